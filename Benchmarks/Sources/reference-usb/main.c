// SPDX-License-Identifier: Apache-2.0

// reference-usb VENDOR PRODUCT: measures the latency of a key in a separate program with libusb. Prints CLOCK_MONOTONIC
// in nanoseconds when it receives a boot report with a key, one line each.
#include <libusb-1.0/libusb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { endpoint = LIBUSB_ENDPOINT_IN | 1, report_bytes = 8 };

static int failed(const char *call, int status) {
  fprintf(stderr, "%s: %s\n", call, libusb_error_name(status));
  return 1;
}

int main(int count, char **arguments) {
  if (count != 3) return 64;
  int status = libusb_init(NULL);
  if (status != 0) return failed("libusb_init", status);
  libusb_device_handle *keypad = libusb_open_device_with_vid_pid(
      NULL, (uint16_t)strtoul(arguments[1], NULL, 16), (uint16_t)strtoul(arguments[2], NULL, 16));
  if (!keypad) return failed("open", LIBUSB_ERROR_NO_DEVICE);
  libusb_set_auto_detach_kernel_driver(keypad, 1);
  status = libusb_claim_interface(keypad, 0);
  if (status != 0) return failed("claim", status);
  // SET_PROTOCOL: boot (HID 1.11, section 7.2.6).
  libusb_control_transfer(keypad, 0x21, 0x0B, 0, 0, NULL, 0, 1000);
  puts("ready");
  fflush(stdout);
  unsigned char report[report_bytes];
  int length;
  while ((status = libusb_interrupt_transfer(keypad, endpoint, report, report_bytes, &length, 0)) == 0) {
    if (length < 3 || report[2] == 0) continue;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
    fflush(stdout);
  }
  return failed("transfer", status);
}
