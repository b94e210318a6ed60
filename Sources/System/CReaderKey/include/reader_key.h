// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plug-in for security keys: a FIDO2 key signs the challenge, after a touch, or when it is presented to a reader.
#include <fido.h>
#include <stdbool.h>

/// Where keys are. Tests replace it.
struct reader_key_source {
  /// Opens the first FIDO2 key. Returns an error if there is none; sets `why` if the user has to know the reason.
  int (*open)(fido_dev_t **device, const char **why);
  /// What the user has to do if there is none.
  const char *(*wanted)(void);
};

/// Keys at this machine's hidraw nodes.
extern const struct reader_key_source reader_key_plugged_in;

/// Keys at hidraw nodes and card readers.
extern const struct reader_key_source reader_key_any;

/// Keys at readers of pcscd (NFC). One counts only if it was inserted, or laid on the reader, after the first
/// look, because it signs without a touch.
extern const struct reader_key_source reader_key_cards;

/// Whether an open key is in a card reader.
bool reader_key_is_card(const fido_dev_t *device);

/// Whether the key that was opened last in a card reader was removed during a call.
bool reader_key_card_is_removed(void);

/// Whether there is a card in a reader, at the last look.
bool reader_key_has_card(void);

/// Whether there is a card reader, at the last look.
bool reader_key_has_card_reader(void);

/// Answers one question on standard input. Returns the exit status.
int reader_key_run(const struct reader_key_source *source);
