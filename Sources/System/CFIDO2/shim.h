// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fido.h>
#include <fido/es256.h>
