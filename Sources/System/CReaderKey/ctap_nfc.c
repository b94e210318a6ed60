// SPDX-License-Identifier: Apache-2.0
#include "ctap_nfc.h"

#include <string.h>

enum {
  longest_part = 255,
  class_ctap = 0x80,
  class_chained = 0x90,
  instruction_message = 0x10,
  instruction_response = 0x11,
  // The caller may be asked to wait.
  takes_waits = 0x80,
  cancels = 0x11,
  status_success = 0x9000,
  status_waits = 0x9100,
};

bool ctap_nfc_select(const struct ctap_nfc *key) {
  static const unsigned char select[] = {0x00, 0xA4, 0x04, 0x00, 0x08, 0xA0, 0x00, 0x00, 0x06, 0x47, 0x2F, 0x00, 0x01,
      0x00};
  unsigned char reply[256];
  size_t size = 0;
  // The reply is U2F_V2 or FIDO_2_0; whether it knows CTAP2 says its answer to the first message.
  return card_command(&key->link, select, sizeof select, 0x00, reply, sizeof reply, &size) == status_success;
}

/// Sends the message in as many commands as it needs. Returns the status of the last one.
static int send_message(
    const struct ctap_nfc *key, const unsigned char *message, size_t size, unsigned char *reply, size_t capacity,
    size_t *reply_size) {
  while (true) {
    size_t part = size < longest_part ? size : longest_part;
    bool is_last = part == size;
    unsigned char command[5 + longest_part + 1] = {
        is_last ? class_ctap : class_chained, instruction_message, takes_waits, 0x00, (unsigned char)part};
    memcpy(command + 5, message, part);
    int status =
        card_command(&key->link, command, 5 + part + is_last, class_ctap, reply, capacity, reply_size);
    if (is_last) return status;
    if (status != status_success || *reply_size != 0) return card_failed;
    message += part;
    size -= part;
  }
}

int ctap_nfc_call(
    const struct ctap_nfc *key, const unsigned char *message, size_t size, unsigned char *reply, size_t capacity) {
  size_t count = 0;
  if (size == 0) return -1;
  int status = send_message(key, message, size, reply, capacity, &count);
  for (int waits = 0; status == status_waits; waits++) {
    if (waits == ctap_nfc_most_waits) return -1;
    unsigned char end = key->wait(key->context) ? cancels : 0x00;
    unsigned char command[] = {class_ctap, instruction_response, end, 0x00, 0x00};
    status = card_command(&key->link, command, sizeof command, class_ctap, reply, capacity, &count);
  }
  return status == status_success && count > 0 ? (int)count : -1;
}
