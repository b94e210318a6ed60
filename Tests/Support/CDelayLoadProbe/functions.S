// SPDX-License-Identifier: Apache-2.0
#include "CDelayLoad.h"

APPROVAL_LIBRARY "libcurl.so.4", "libcurl4"
APPROVAL_FUNCTION curl_msnprintf
APPROVAL_FUNCTION approval_missing_function
