// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <libusb.h>
#include <sys/prctl.h>

// Sets the name of the calling thread, which `top -H` shows; at most 15 characters. prctl is variadic, which Swift
// cannot call.
static inline void approval_usb_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
