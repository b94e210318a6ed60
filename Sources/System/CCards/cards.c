// SPDX-License-Identifier: Apache-2.0
#include "cards.h"

#include <string.h>

static bool is_present(const SCARD_READERSTATE *state) { return (state->dwEventState & SCARD_STATE_PRESENT) != 0; }

/// Whether a card was inserted since the state before: the reader was empty, or the card was changed meanwhile. A
/// reader that was unplugged counts its cards again from the beginning: what is in it then is not new.
static bool is_new(const SCARD_READERSTATE *state) {
  DWORD changes = ((state->dwEventState >> 16) - (state->dwCurrentState >> 16)) & 0xFFFF;
  bool is_changed = changes >= 2 && changes < 0x8000;
  return is_present(state) && ((state->dwCurrentState & SCARD_STATE_EMPTY) || is_changed);
}

/// The names of the readers, each ended by a zero byte, and one more zero byte.
static LONG list_names(SCARDCONTEXT context, char *names, DWORD *size) {
  LONG error = SCardListReaders(context, NULL, names, size);
  if (error != SCARD_E_NO_READERS_AVAILABLE) return error;
  names[0] = 0;
  *size = 1;
  return SCARD_S_SUCCESS;
}

/// pcscd before version 2.3 reports a new reader only to a call that waits for it.
static bool are_other_readers(SCARDCONTEXT context, const struct card_readers *readers) {
  char names[sizeof readers->names];
  DWORD size = sizeof names;
  return list_names(context, names, &size) != SCARD_S_SUCCESS || size != readers->size ||
         memcmp(names, readers->names, size) != 0;
}

LONG card_readers_list(SCARDCONTEXT context, struct card_readers *readers) {
  readers->count = 0;
  readers->size = sizeof readers->names;
  LONG error = list_names(context, readers->names, &readers->size);
  if (error != SCARD_S_SUCCESS) return error;
  memset(readers->states, 0, sizeof readers->states);
  for (const char *name = readers->names; *name && readers->count < cards_most_readers; name += strlen(name) + 1)
    readers->states[readers->count++].szReader = name;
  // The last entry reports new readers.
  readers->states[readers->count++].szReader = "\\\\?PnP?\\Notification";
  error = SCardGetStatusChange(context, 0, readers->states, readers->count);
  for (DWORD index = 0; index < readers->count; index++)
    readers->states[index].dwCurrentState = readers->states[index].dwEventState & ~(DWORD)SCARD_STATE_CHANGED;
  return error == SCARD_E_TIMEOUT ? SCARD_S_SUCCESS : error;
}

bool card_readers_have_card(const struct card_readers *readers) {
  for (DWORD index = 0; index + 1 < readers->count; index++)
    if (readers->states[index].dwCurrentState & SCARD_STATE_PRESENT) return true;
  return false;
}

LONG card_readers_wait(
    SCARDCONTEXT context, struct card_readers *readers, DWORD milliseconds, const char **inserted, int *present) {
  *inserted = NULL;
  *present = 0;
  if (are_other_readers(context, readers)) return SCARD_E_UNKNOWN_READER;
  LONG error = SCardGetStatusChange(context, milliseconds, readers->states, readers->count);
  if (error != SCARD_S_SUCCESS) return error;
  for (DWORD index = 0; index + 1 < readers->count; index++) {
    SCARD_READERSTATE *state = &readers->states[index];
    *present += is_present(state);
    if (is_new(state)) *inserted = state->szReader;
    state->dwCurrentState = state->dwEventState & ~(DWORD)SCARD_STATE_CHANGED;
  }
  // Another reader. A card in it must be inserted again.
  const SCARD_READERSTATE *last = &readers->states[readers->count - 1];
  if (!(last->dwEventState & SCARD_STATE_CHANGED)) return SCARD_S_SUCCESS;
  *inserted = NULL;
  return SCARD_E_UNKNOWN_READER;
}

enum {
  protocols = SCARD_PROTOCOL_T0 | SCARD_PROTOCOL_T1,
  // By other programs, before one of them leaves a card to this one.
  most_resets = 8,
};

/// Begins a transaction, also after resets by other programs.
static LONG begin(struct card *card) {
  LONG error = SCardBeginTransaction(card->handle);
  for (int resets = 0; error == SCARD_W_RESET_CARD && resets < most_resets; resets++) {
    error = SCardReconnect(card->handle, SCARD_SHARE_SHARED, protocols, SCARD_LEAVE_CARD, &card->protocol);
    if (error == SCARD_S_SUCCESS) error = SCardBeginTransaction(card->handle);
  }
  return error;
}

enum card_opening card_open(SCARDCONTEXT context, const char *reader, struct card *card) {
  card->protocol = 0;
  if (SCardConnect(context, reader, SCARD_SHARE_SHARED, protocols, &card->handle, &card->protocol) != SCARD_S_SUCCESS)
    return card_is_unreadable;
  if (begin(card) == SCARD_S_SUCCESS) return card_is_open;
  SCardDisconnect(card->handle, SCARD_LEAVE_CARD);
  return card_is_gone;
}

void card_close(const struct card *card) {
  // Inside of the transaction: after it, a reset would end what another program has begun.
  SCardEndTransaction(card->handle, SCARD_RESET_CARD);
  SCardDisconnect(card->handle, SCARD_LEAVE_CARD);
}

static int transmit(
    void *context, const unsigned char *command, size_t size, unsigned char *answer, size_t capacity) {
  const struct card *card = context;
  const SCARD_IO_REQUEST *header = card->protocol == SCARD_PROTOCOL_T0 ? SCARD_PCI_T0 : SCARD_PCI_T1;
  // A command of T=0 with data does not say how much is expected (ISO 7816-3, 12.2): the status has that.
  if (card->protocol == SCARD_PROTOCOL_T0 && size > 5 && size == 6 + (size_t)command[4]) size--;
  DWORD count = (DWORD)capacity;
  LONG error = SCardTransmit(card->handle, header, command, (DWORD)size, NULL, answer, &count);
  if (error == SCARD_W_REMOVED_CARD || error == SCARD_E_NO_SMARTCARD || error == SCARD_W_RESET_CARD)
    return card_removed;
  if (error == (LONG)0x8010002F) return card_removed;  // SCARD_E_COMM_DATA_LOST
  return error == SCARD_S_SUCCESS ? (int)count : card_failed;
}

struct card_link card_link(const struct card *card) { return (struct card_link){transmit, (void *)card}; }
