// SPDX-License-Identifier: Apache-2.0
#include "reader_badge.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <winscard.h>

#include "plug_in.h"

enum {
  most_readers = 15,
  most_hints = 14,  // the token ends a use with more than 32 lines
  // SCardTransmit has no time limit, and nothing ends it: the process is ended instead.
  card_seconds = 2,
};

/// The result of a talk with a card.
enum talk { talk_done, talk_again, talk_over };

static struct plug_in_question question;
static int hints;

static void pause_ms(long milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&left, NULL);
}

/// The token does not want an answer any more. pcscd releases what this process has.
static void on_end(void) { _exit(0); }

/// The card does not answer. The token starts another process for its next try.
static void on_alarm(int signal) {
  static const char line[] = "{\"retry\":\"the badge does not answer\"}\n";
  (void)signal;
  ssize_t count = write(STDOUT_FILENO, line, sizeof line - 1);
  _exit(count < 0 ? 2 : 1);
}

static void retry(const char *why) {
  if (++hints > most_hints) _exit(1);
  plug_in_retry(why);
}

// MARK: One card

/// Sends a command and collects the whole reply without its status. Returns the status (0x9000 is success), 0 if the
/// card was removed, or -1 for another failure.
static int transmit(SCARDHANDLE card, DWORD protocol, const unsigned char *command, size_t size,
    unsigned char reply[badge_longest_reply], size_t *reply_size) {
  const SCARD_IO_REQUEST *header = protocol == SCARD_PROTOCOL_T0 ? SCARD_PCI_T0 : SCARD_PCI_T1;
  unsigned char more[] = {0x00, 0xC0, 0x00, 0x00, 0x00};
  *reply_size = 0;
  while (true) {
    unsigned char part[MAX_BUFFER_SIZE_EXTENDED];
    DWORD count = sizeof part;
    LONG error = SCardTransmit(card, header, command, (DWORD)size, NULL, part, &count);
    if (error == SCARD_W_REMOVED_CARD || error == SCARD_E_NO_SMARTCARD || error == SCARD_W_RESET_CARD) return 0;
    if (error == (LONG)0x8010002F) return 0;  // SCARD_E_COMM_DATA_LOST
    if (error != SCARD_S_SUCCESS || count < 2 || count - 2 > badge_longest_reply - *reply_size) return -1;
    memcpy(reply + *reply_size, part, count - 2);
    *reply_size += count - 2;
    if (part[count - 2] != 0x61) return part[count - 2] << 8 | part[count - 1];
    // There is more.
    more[4] = part[count - 1];
    command = more;
    size = sizeof more;
  }
}

/// Says why a command failed. Returns whether the card may be presented again.
static enum talk failed(int status, const char *why) {
  retry(status == 0 ? "the badge was removed too early" : why);
  return talk_again;
}

/// Lets the card sign the challenge, and answers.
static enum talk sign(SCARDHANDLE card, DWORD protocol, const unsigned char *point) {
  static const unsigned char head[] = {0x00, 0x87, 0x11, 0x9E, 0x26, 0x7C, 0x24, 0x82, 0x00, 0x81, 0x20};
  unsigned char command[sizeof head + plug_in_challenge_size + 1] = {0};
  static unsigned char reply[badge_longest_reply];
  size_t size = 0, signature_size = 0;
  const unsigned char *signature = NULL;
  memcpy(command, head, sizeof head);
  memcpy(command + sizeof head, question.challenge, plug_in_challenge_size);
  int status = transmit(card, protocol, command, sizeof command, reply, &size);
  if (status != 0x9000) return failed(status, "the badge does not sign");
  if (!badge_read_signature(reply, size, &signature, &signature_size))
    return failed(-1, "the badge answers in a form that is not known");
  // For the user: the server decides.
  if (!badge_verify(point, question.challenge, signature, signature_size))
    return failed(-1, question.step == plug_in_register ? "the badge does not have the key of its certificate"
                                                        : "this badge is not the registered one");
  struct plug_in_value values[] = {
      {"signature", signature, signature_size}, {"public_key", point, badge_point_size}};
  bool registers = question.step == plug_in_register;
  alarm(0);
  plug_in_answer(values, registers ? 2 : 1, point, registers ? badge_point_size : 0);
  return talk_done;
}

/// Reads the public key of the card into `point`, in a registration.
static enum talk read_key(SCARDHANDLE card, DWORD protocol, unsigned char point[badge_point_size]) {
  static const unsigned char certificate[] = {0x00, 0xCB, 0x3F, 0xFF, 0x05, 0x5C, 0x03, 0x5F, 0xC1, 0x01, 0x00};
  static unsigned char reply[badge_longest_reply];
  size_t size = 0;
  const char *why = NULL;
  int status = transmit(card, protocol, certificate, sizeof certificate, reply, &size);
  if (status != 0x9000) return failed(status, "the badge has no certificate for card authentication");
  if (badge_read_certificate(reply, size, point, &why)) return talk_done;
  plug_in_cancel(why);
  return talk_over;
}

static enum talk talk(SCARDHANDLE card, DWORD protocol) {
  static const unsigned char select[] = {0x00, 0xA4, 0x04, 0x00, 0x09, 0xA0, 0x00, 0x00, 0x03, 0x08, 0x00, 0x00, 0x10,
      0x00, 0x00};
  static unsigned char reply[badge_longest_reply];
  size_t size = 0;
  int status = transmit(card, protocol, select, sizeof select, reply, &size);
  if (status != 0x9000) return failed(status, "this card is not a PIV badge");
  unsigned char point[badge_point_size];
  if (question.step != plug_in_register) return sign(card, protocol, question.registration);
  enum talk result = read_key(card, protocol, point);
  return result == talk_done ? sign(card, protocol, point) : result;
}

static enum talk use(SCARDCONTEXT context, const char *reader) {
  SCARDHANDLE card;
  DWORD protocol = 0;
  alarm(card_seconds);
  LONG error =
      SCardConnect(context, reader, SCARD_SHARE_SHARED, SCARD_PROTOCOL_T0 | SCARD_PROTOCOL_T1, &card, &protocol);
  enum talk result = talk_again;
  if (error == SCARD_S_SUCCESS) {
    if (SCardBeginTransaction(card) == SCARD_S_SUCCESS) {
      result = talk(card, protocol);
      SCardEndTransaction(card, SCARD_LEAVE_CARD);
    } else {
      retry("the badge was removed too early");
    }
    SCardDisconnect(card, SCARD_RESET_CARD);
  } else {
    retry("the card cannot be read");
  }
  alarm(0);
  return result;
}

// MARK: Readers

struct readers {
  char names[4096];
  SCARD_READERSTATE states[most_readers + 1];
  DWORD count;
};

static bool is_present(const SCARD_READERSTATE *state) { return (state->dwEventState & SCARD_STATE_PRESENT) != 0; }

/// Whether a card was inserted since the state before: it was not there, or it was changed meanwhile.
static bool is_new(const SCARD_READERSTATE *state) {
  DWORD insertions = (state->dwEventState >> 16) - (state->dwCurrentState >> 16);
  return is_present(state) && (!(state->dwCurrentState & SCARD_STATE_PRESENT) || (insertions & 0xFFFF) >= 2);
}

/// Lists the readers, and what is in them now. The last entry reports new readers.
static LONG list(SCARDCONTEXT context, struct readers *readers) {
  DWORD size = sizeof readers->names;
  readers->count = 0;
  LONG error = SCardListReaders(context, NULL, readers->names, &size);
  if (error == SCARD_E_NO_READERS_AVAILABLE) readers->names[0] = 0;
  else if (error != SCARD_S_SUCCESS) return error;
  memset(readers->states, 0, sizeof readers->states);
  for (const char *name = readers->names; *name && readers->count < most_readers; name += strlen(name) + 1)
    readers->states[readers->count++].szReader = name;
  readers->states[readers->count++].szReader = "\\\\?PnP?\\Notification";
  error = SCardGetStatusChange(context, 0, readers->states, readers->count);
  for (DWORD index = 0; index < readers->count; index++)
    readers->states[index].dwCurrentState = readers->states[index].dwEventState & ~(DWORD)SCARD_STATE_CHANGED;
  return error == SCARD_E_TIMEOUT ? SCARD_S_SUCCESS : error;
}

/// Waits for a change, and uses the card that was inserted, if there is one.
static enum talk wait_for_card(SCARDCONTEXT context, struct readers *readers, LONG *error) {
  *error = SCardGetStatusChange(context, INFINITE, readers->states, readers->count);
  if (*error != SCARD_S_SUCCESS) return talk_again;
  const char *inserted = NULL;
  int present = 0;
  for (DWORD index = 0; index + 1 < readers->count; index++) {
    SCARD_READERSTATE *state = &readers->states[index];
    present += is_present(state);
    if (is_new(state)) inserted = state->szReader;
    state->dwCurrentState = state->dwEventState & ~(DWORD)SCARD_STATE_CHANGED;
  }
  SCARD_READERSTATE *last = &readers->states[readers->count - 1];
  // Another reader: the list is made again. A card in it must be inserted again.
  if (last->dwEventState & SCARD_STATE_CHANGED) *error = SCARD_E_UNKNOWN_READER;
  if (!inserted) return talk_again;
  if (present > 1) {
    retry("there is more than one card: present only the badge");
    return talk_again;
  }
  return use(context, inserted);
}

/// Uses the first card that is inserted from now on.
static int serve(SCARDCONTEXT context) {
  static struct readers readers;
  static bool is_said;
  LONG error = list(context, &readers);
  while (error == SCARD_S_SUCCESS || error == SCARD_E_UNKNOWN_READER) {
    bool is_there = false;
    for (DWORD index = 0; index + 1 < readers.count; index++) is_there |= is_present(&readers.states[index]);
    if (!is_said) plug_in_wait(is_there ? "remove the badge, then present it again" : "present the badge");
    is_said = true;
    enum talk result = wait_for_card(context, &readers, &error);
    if (result == talk_done) return 0;
    if (result == talk_over) return 1;
    if (error == SCARD_E_UNKNOWN_READER) error = list(context, &readers);
  }
  return -1;
}

int reader_badge_run(void) {
  if (!plug_in_read(&question)) return 1;
  if (question.step == plug_in_deregister) {
    plug_in_answer(NULL, 0, NULL, 0);
    return 0;
  }
  if (question.step == plug_in_authenticate && question.registration_size != badge_point_size) {
    plug_in_cancel("the badge must be registered again");
    return 1;
  }
  struct sigaction action = {.sa_handler = on_alarm};
  if (sigaction(SIGALRM, &action, NULL) != 0 || !plug_in_watch(on_end)) return 1;
  // pcscd may be started, or started again, meanwhile.
  while (true) {
    SCARDCONTEXT context;
    if (SCardEstablishContext(SCARD_SCOPE_SYSTEM, NULL, NULL, &context) == SCARD_S_SUCCESS) {
      int status = serve(context);
      SCardReleaseContext(context);
      if (status >= 0) return status;
    }
    pause_ms(500);
  }
}
