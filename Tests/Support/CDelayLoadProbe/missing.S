// SPDX-License-Identifier: Apache-2.0
#include "CDelayLoad.h"

APPROVAL_LIBRARY "libapproval-missing.so.9", "libapproval-missing9"
APPROVAL_FUNCTION approval_of_missing_library
