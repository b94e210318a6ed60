// SPDX-License-Identifier: Apache-2.0
#include "reader_badge.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cards.h"
#include "plug_in.h"

enum {
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

/// Sends one command, whose answer has a time limit. `context` is a `card_link`.
static int exchange(
    void *context, const unsigned char *command, size_t size, unsigned char *answer, size_t capacity) {
  const struct card_link *link = context;
  alarm(card_seconds);
  return link->transmit(link->context, command, size, answer, capacity);
}

/// Sends a command and collects the whole reply without its status: see `card_command`.
static int transmit(const struct card *card, const unsigned char *command, size_t size,
    unsigned char reply[badge_longest_reply], size_t *reply_size) {
  struct card_link link = card_link(card);
  const struct card_link limited = {exchange, &link};
  return card_command(&limited, command, size, 0x00, reply, badge_longest_reply, reply_size);
}

/// Says why a command failed. Returns whether the card may be presented again.
static enum talk failed(int status, const char *why) {
  retry(status == 0 ? "the badge was removed too early" : why);
  return talk_again;
}

/// Lets the card sign the challenge, and answers.
static enum talk sign(const struct card *card, const unsigned char *point) {
  static const unsigned char head[] = {0x00, 0x87, 0x11, 0x9E, 0x26, 0x7C, 0x24, 0x82, 0x00, 0x81, 0x20};
  unsigned char command[sizeof head + plug_in_challenge_size + 1] = {0};
  static unsigned char reply[badge_longest_reply];
  size_t size = 0, signature_size = 0;
  const unsigned char *signature = NULL;
  memcpy(command, head, sizeof head);
  memcpy(command + sizeof head, question.challenge, plug_in_challenge_size);
  int status = transmit(card, command, sizeof command, reply, &size);
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
static enum talk read_key(const struct card *card, unsigned char point[badge_point_size]) {
  static const unsigned char certificate[] = {0x00, 0xCB, 0x3F, 0xFF, 0x05, 0x5C, 0x03, 0x5F, 0xC1, 0x01, 0x00};
  static unsigned char reply[badge_longest_reply];
  size_t size = 0;
  const char *why = NULL;
  int status = transmit(card, certificate, sizeof certificate, reply, &size);
  if (status != 0x9000) return failed(status, "the badge has no certificate for card authentication");
  if (badge_read_certificate(reply, size, point, &why)) return talk_done;
  plug_in_cancel(why);
  return talk_over;
}

static enum talk talk(const struct card *card) {
  static const unsigned char select[] = {0x00, 0xA4, 0x04, 0x00, 0x09, 0xA0, 0x00, 0x00, 0x03, 0x08, 0x00, 0x00, 0x10,
      0x00, 0x00};
  static unsigned char reply[badge_longest_reply];
  size_t size = 0;
  int status = transmit(card, select, sizeof select, reply, &size);
  if (status != 0x9000) return failed(status, "this card is not a PIV badge");
  unsigned char point[badge_point_size];
  if (question.step != plug_in_register) return sign(card, question.registration);
  enum talk result = read_key(card, point);
  return result == talk_done ? sign(card, point) : result;
}

static enum talk use(SCARDCONTEXT context, const char *reader) {
  struct card card;
  alarm(card_open_seconds);
  enum talk result = talk_again;
  switch (card_open(context, reader, &card)) {
    case card_is_open:
      result = talk(&card);
      alarm(card_seconds);
      card_close(&card);
      break;
    case card_is_unreadable: retry("the card cannot be read"); break;
    case card_is_gone: retry("the badge was removed too early"); break;
  }
  alarm(0);
  return result;
}

// MARK: Readers

/// Waits for a change, and uses the card that was inserted, if there is one.
static enum talk wait_for_card(SCARDCONTEXT context, struct card_readers *readers, LONG *error) {
  const char *inserted = NULL;
  int present = 0;
  *error = card_readers_wait(context, readers, INFINITE, &inserted, &present);
  if (!inserted) return talk_again;
  if (present > 1) {
    retry("there is more than one card: present only the badge");
    return talk_again;
  }
  return use(context, inserted);
}

/// Uses the first card that is inserted from now on.
static int serve(SCARDCONTEXT context) {
  static struct card_readers readers;
  static bool is_said;
  LONG error = card_readers_list(context, &readers);
  while (error == SCARD_S_SUCCESS || error == SCARD_E_UNKNOWN_READER) {
    bool is_there = card_readers_have_card(&readers);
    if (!is_said) plug_in_wait(is_there ? "remove the badge, then present it again" : "present the badge");
    is_said = true;
    enum talk result = wait_for_card(context, &readers, &error);
    if (result == talk_done) return 0;
    if (result == talk_over) return 1;
    if (error == SCARD_E_UNKNOWN_READER) error = card_readers_list(context, &readers);
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
