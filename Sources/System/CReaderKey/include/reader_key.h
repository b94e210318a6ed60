// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plug-in for security keys: a FIDO2 key signs the challenge, after a touch.
#include <fido.h>

/// Where keys are. Tests replace it.
struct reader_key_source {
  /// Opens the first FIDO2 key. Returns FIDO_ERR_NOTFOUND if there is none.
  int (*open)(fido_dev_t **device);
};

/// Keys at this machine's hidraw nodes.
extern const struct reader_key_source reader_key_hidraw;

/// Answers one question on standard input. Returns the exit status.
int reader_key_run(const struct reader_key_source *source);
