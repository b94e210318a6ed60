// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctap_nfc.h"
#include "reader_key.h"

enum {
  // SCardTransmit has no time limit, and nothing ends it: the process is ended instead. A key that needs longer says
  // so.
  card_seconds = 4,
  longest_message = 2048,
  nonce_size = 8,
  // What a key answers to CTAPHID_INIT: libfido2 wants it of every key.
  attributes_size = 17,
  hid_initialize = 0x06,
  hid_cbor = 0x10,
  hid_cancel = 0x11,
};

/// The readers, and the key that is open.
static struct {
  SCARDCONTEXT context;
  bool has_context;
  struct card_readers readers;
  struct card card;
  unsigned char nonce[nonce_size];
  unsigned char message[longest_message];
  size_t message_size;
  atomic_bool is_canceled;
  bool is_removed;
} cards;

/// The key does not answer. The token starts another process for its next try.
static void on_alarm(int signal) {
  static const char line[] = "{\"retry\":\"the security key does not answer\"}\n";
  (void)signal;
  ssize_t count = write(STDOUT_FILENO, line, sizeof line - 1);
  _exit(count < 0 ? 2 : 1);
}

// MARK: The transport of libfido2

static int transmit_in_time(
    void *context, const unsigned char *command, size_t size, unsigned char *answer, size_t capacity) {
  struct card_link link = card_link(context);
  alarm(card_seconds);
  int count = link.transmit(link.context, command, size, answer, capacity);
  alarm(0);
  if (count == card_removed) cards.is_removed = true;
  return count;
}

static bool wait_for_key(void *context) {
  struct timespec left = {0, 100 * 1000000};
  (void)context;
  nanosleep(&left, NULL);
  return atomic_load(&cards.is_canceled);
}

static struct ctap_nfc open_key(void) {
  return (struct ctap_nfc){{transmit_in_time, &cards.card}, wait_for_key, NULL};
}

/// Called by other threads only to cancel.
static int send_to_key(fido_dev_t *device, uint8_t command, const unsigned char *bytes, size_t size) {
  (void)device;
  switch (command) {
    case hid_initialize:
      if (size != sizeof cards.nonce) return -1;
      memcpy(cards.nonce, bytes, size);
      return 0;
    case hid_cbor:
      if (size > sizeof cards.message) return -1;
      memcpy(cards.message, bytes, size);
      cards.message_size = size;
      atomic_store(&cards.is_canceled, false);
      return 0;
    case hid_cancel: atomic_store(&cards.is_canceled, true); return 0;
    default: return -1;
  }
}

static int receive_from_key(
    fido_dev_t *device, uint8_t command, unsigned char *bytes, size_t size, int milliseconds) {
  const struct ctap_nfc key = open_key();
  (void)device;
  (void)milliseconds;
  if (command == hid_cbor) return ctap_nfc_call(&key, cards.message, cards.message_size, bytes, size);
  if (command != hid_initialize || size < attributes_size || !ctap_nfc_select(&key)) return -1;
  // The nonce, a channel, the version of CTAPHID, and that there are messages in CBOR, and none of U2F.
  memset(bytes, 0, attributes_size);
  memcpy(bytes, cards.nonce, sizeof cards.nonce);
  bytes[nonce_size + 4] = 2;
  bytes[attributes_size - 1] = 0x0C;
  return attributes_size;
}

static void *open_handle(const char *path) {
  (void)path;
  return &cards;
}

static void close_handle(void *handle) {
  (void)handle;
  alarm(card_seconds);
  card_close(&cards.card);
  alarm(0);
}

static int read_nothing(void *handle, unsigned char *bytes, size_t size, int milliseconds) {
  (void)handle, (void)bytes, (void)size, (void)milliseconds;
  return -1;
}

static int write_nothing(void *handle, const unsigned char *bytes, size_t size) {
  (void)handle, (void)bytes, (void)size;
  return -1;
}

bool reader_key_is_card(const fido_dev_t *device) { return fido_dev_io_handle(device) == &cards; }

bool reader_key_card_is_removed(void) { return cards.is_removed; }

// MARK: Insertions

static void forget_readers(void) {
  SCardReleaseContext(cards.context);
  cards.has_context = false;
}

/// Connects to pcscd, which may be started later, and notes what is in its readers now. Cards must be inserted again.
static bool look_at_readers(void) {
  if (cards.has_context) return true;
  struct sigaction action = {.sa_handler = on_alarm};
  if (sigaction(SIGALRM, &action, NULL) != 0) return false;
  if (SCardEstablishContext(SCARD_SCOPE_SYSTEM, NULL, NULL, &cards.context) != SCARD_S_SUCCESS) return false;
  cards.has_context = true;
  if (card_readers_list(cards.context, &cards.readers) == SCARD_S_SUCCESS) return true;
  forget_readers();
  return false;
}

/// The reader with a card that was inserted since the last look, or NULL.
static const char *inserted_card(const char **why) {
  const char *inserted = NULL;
  int present = 0;
  LONG error = card_readers_wait(cards.context, &cards.readers, 0, &inserted, &present);
  if (error == SCARD_E_UNKNOWN_READER) error = card_readers_list(cards.context, &cards.readers);
  if (error != SCARD_S_SUCCESS && error != SCARD_E_TIMEOUT) forget_readers();
  if (error != SCARD_S_SUCCESS || !inserted) return NULL;
  if (present == 1) return inserted;
  *why = "there is more than one card: present only the security key";
  return NULL;
}

static int open_card(fido_dev_t **device, const char **why) {
  static const fido_dev_io_t io = {open_handle, close_handle, read_nothing, write_nothing};
  static const fido_dev_transport_t transport = {receive_from_key, send_to_key};
  const char *reader = look_at_readers() ? inserted_card(why) : NULL;
  if (!reader) return FIDO_ERR_NOTFOUND;
  cards.is_removed = false;
  alarm(card_open_seconds);
  enum card_opening opening = card_open(cards.context, reader, &cards.card);
  alarm(0);
  *why = opening == card_is_unreadable ? "the card cannot be read" : "the security key was removed";
  if (opening != card_is_open) return FIDO_ERR_NOTFOUND;
  fido_dev_t *candidate = fido_dev_new();
  if (candidate && fido_dev_set_io_functions(candidate, &io) == FIDO_OK &&
      fido_dev_set_transport_functions(candidate, &transport) == FIDO_OK) {
    // If it fails, it closes the handle.
    if (fido_dev_open(candidate, "card") == FIDO_OK && fido_dev_is_fido2(candidate)) {
      *device = candidate;
      return FIDO_OK;
    }
    *why = "this card is not a security key, or was removed";
    fido_dev_close(candidate);
  } else {
    close_handle(&cards);
  }
  fido_dev_free(&candidate);
  return FIDO_ERR_NOTFOUND;
}

static const char *wanted_card(void) {
  return reader_key_has_card() ? "remove the security key, then present it again" : "present the security key";
}

bool reader_key_has_card(void) { return cards.has_context && card_readers_have_card(&cards.readers); }

bool reader_key_has_card_reader(void) { return cards.has_context && cards.readers.count > 1; }

const struct reader_key_source reader_key_cards = {open_card, wanted_card};
