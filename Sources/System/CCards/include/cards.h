// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cards over PC/SC (pcscd): which one is inserted, and commands to it (ISO 7816-4).
#include <stdbool.h>
#include <stddef.h>
#include <winscard.h>

// MARK: Commands

/// The way to a card. Tests and the fuzzer replace it.
struct card_link {
  /// Sends one command. Returns the size of the answer with its status of two bytes, or one of `card_failure`.
  int (*transmit)(
      void *context, const unsigned char *command, size_t size, unsigned char *answer, size_t capacity);
  void *context;
};

enum card_failure { card_removed = 0, card_failed = -1 };

/// Sends a command and collects the whole reply without its status; what a card says is hostile.
/// `class_of_more` is the class byte of the commands that get the rest of a long reply (GET RESPONSE). Returns the
/// status (0x9000 is success), or one of `card_failure`, also for a reply of more than `capacity` bytes.
int card_command(
    const struct card_link *link, const unsigned char *command, size_t size, unsigned char class_of_more,
    unsigned char *reply, size_t capacity, size_t *reply_size);

// MARK: Readers

enum { cards_most_readers = 15 };

/// The readers, and what was in them at the last look.
struct card_readers {
  char names[4096];
  /// Of the names, in bytes.
  DWORD size;
  SCARD_READERSTATE states[cards_most_readers + 1];
  DWORD count;
};

/// Lists the readers, and what is in them now.
LONG card_readers_list(SCARDCONTEXT context, struct card_readers *readers);

/// Whether there is a card in a reader.
bool card_readers_have_card(const struct card_readers *readers);

/// Waits for a change, at most for `milliseconds`. `inserted` is the reader in which a card was inserted since the last
/// look, or NULL; `present` is the number of cards. Returns SCARD_E_TIMEOUT without a change, and
/// SCARD_E_UNKNOWN_READER, and no card, if the readers have changed: list them again.
LONG card_readers_wait(
    SCARDCONTEXT context, struct card_readers *readers, DWORD milliseconds, const char **inserted, int *present);

// MARK: One card

struct card {
  SCARDHANDLE handle;
  DWORD protocol;
};

enum card_opening { card_is_open, card_is_unreadable, card_is_gone };

/// The time limit that callers set for `card_open`: another program may use the card meanwhile, for example a security
/// key that waits for a touch.
enum { card_open_seconds = 40 };

/// Connects to a card, and keeps other programs from it until it is closed. Waits for the end of what other programs do
/// with it.
enum card_opening card_open(SCARDCONTEXT context, const char *reader, struct card *card);

/// Resets a card, and leaves it to other programs.
void card_close(const struct card *card);

/// The link to an open card. SCardTransmit has no time limit, and nothing ends it: limit the life of the process.
struct card_link card_link(const struct card *card);
