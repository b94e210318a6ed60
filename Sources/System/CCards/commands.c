// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cards.h"

int card_command(
    const struct card_link *link, const unsigned char *command, size_t size, unsigned char class_of_more,
    unsigned char *reply, size_t capacity, size_t *reply_size) {
  unsigned char more[] = {class_of_more, 0xC0, 0x00, 0x00, 0x00};
  bool is_first = true;
  *reply_size = 0;
  while (true) {
    unsigned char part[MAX_BUFFER_SIZE_EXTENDED];
    int count = link->transmit(link->context, command, size, part, sizeof part);
    if (count == card_removed) return card_removed;
    if (count < 2 || (size_t)count > sizeof part || (size_t)count - 2 > capacity - *reply_size) return card_failed;
    memcpy(reply + *reply_size, part, (size_t)count - 2);
    *reply_size += (size_t)count - 2;
    if (part[count - 2] != 0x61) {
      int status = part[count - 2] << 8 | part[count - 1];
      return status == 0 ? card_failed : status;
    }
    // There is more. A card that never says what would keep this going.
    if (count == 2 && !is_first) return card_failed;
    is_first = false;
    more[4] = part[count - 1];
    command = more;
    size = sizeof more;
  }
}
