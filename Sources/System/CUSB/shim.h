// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <libusb.h>
#include <sys/prctl.h>
