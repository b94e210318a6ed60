// SPDX-License-Identifier: Apache-2.0
#include "reader_key.h"

// How long a key may take to say what it is. One that is broken would keep the others waiting.
enum { open_ms = 2000 };

static int open_hidraw(fido_dev_t **device, const char **why) {
  fido_dev_info_t *list = fido_dev_info_new(8);
  size_t found = 0;
  (void)why;
  int error = list ? fido_dev_info_manifest(list, 8, &found) : FIDO_ERR_INTERNAL;
  if (error == FIDO_OK) error = FIDO_ERR_NOTFOUND;
  for (size_t index = 0; index < found && error == FIDO_ERR_NOTFOUND; index++) {
    fido_dev_t *candidate = fido_dev_new();
    if (candidate && fido_dev_set_timeout(candidate, open_ms) == FIDO_OK &&
        fido_dev_open(candidate, fido_dev_info_path(fido_dev_info_ptr(list, index))) == FIDO_OK &&
        fido_dev_is_fido2(candidate) && fido_dev_set_timeout(candidate, -1) == FIDO_OK) {
      *device = candidate;
      error = FIDO_OK;
    } else if (candidate) {
      fido_dev_close(candidate);
      fido_dev_free(&candidate);
    }
  }
  fido_dev_info_free(&list, 8);
  return error;
}

/// A key that is plugged in is used before one on a reader.
static int open_any(fido_dev_t **device, const char **why) {
  return open_hidraw(device, why) == FIDO_OK ? FIDO_OK : reader_key_cards.open(device, why);
}

static const char *wanted_key(void) { return "plug in the security key"; }

static const char *wanted_anywhere(void) {
  if (reader_key_has_card()) return "plug in the security key, or remove it from the reader and present it again";
  return reader_key_has_card_reader() ? "plug in the security key, or present it to the reader"
                                      : wanted_key();
}

const struct reader_key_source reader_key_plugged_in = {open_hidraw, wanted_key};
const struct reader_key_source reader_key_any = {open_any, wanted_anywhere};
