// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <libusb-1.0/libusb.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <unistd.h>

static inline int approval_usb_new_inotify(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }
/// Watches a directory of device nodes: nodes that appear, disappear, or change their owner. Once for each directory.
static inline int approval_usb_watch_directory(int inotify, const char *path) {
  return inotify_add_watch(inotify, path, IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR);
}
