// SPDX-License-Identifier: Apache-2.0
#pragma once
// CTAP2 over NFC (CTAP 2.1, section 11.3): messages to a security key as commands to a card (ISO 7816-4), of at most
// 255 bytes each, which every such key understands.
#include "cards.h"

struct ctap_nfc {
  struct card_link link;
  /// Called before a key that needs more time is asked again. Returns whether its call is not wanted any more.
  bool (*wait)(void *context);
  void *context;
};

enum { ctap_nfc_most_waits = 600 };

/// Selects the application for FIDO keys. Returns false if there is none.
bool ctap_nfc_select(const struct ctap_nfc *key);

/// Sends a message and waits for its answer, whose size it returns: a status byte, and mostly CBOR. Returns -1 if the
/// key was removed, refuses, answers with more than `capacity` bytes, or asks for more time too often.
int ctap_nfc_call(
    const struct ctap_nfc *key, const unsigned char *message, size_t size, unsigned char *reply, size_t capacity);
