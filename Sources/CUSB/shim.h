#pragma once
#include <libusb.h>
#include <sys/prctl.h>

// What `top -H` calls the calling thread; at most 15 characters. prctl is variadic, which Swift cannot call.
static inline void approval_usb_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
