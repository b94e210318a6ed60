// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plug-in protocol (docs/authenticators.md) for programs in C: one question on standard input, lines on standard
// output.
#include <stdbool.h>
#include <stddef.h>

enum {
  plug_in_longest_line = 65536,
  plug_in_challenge_size = 32,
  plug_in_largest_registration = 32768,
  plug_in_longest_text = 256,
};

enum plug_in_step { plug_in_register, plug_in_authenticate, plug_in_deregister };

struct plug_in_question {
  enum plug_in_step step;
  /// The host name of the token server; with a zero at its end.
  char server[plug_in_longest_text];
  unsigned char challenge[plug_in_challenge_size];
  /// A part of the line; NULL without one.
  const unsigned char *registration;
  size_t registration_size;
};

/// Parses a question: one line without its line feed, which is overwritten in parts. Texts that are not in the
/// structure are skipped. Returns false unless it is one of version 1 with the members that it needs.
bool plug_in_parse(char *line, size_t size, struct plug_in_question *question);

/// Reads the question, within 10 s. Returns false at the end of the input, for what is not a question, and if something
/// follows it. What the question points to stays until the next call.
bool plug_in_read(struct plug_in_question *question);

/// Calls `on_end` in a thread of its own when the token closes the connection before the answer; after it, the program
/// ends by itself. Call once, after the question.
bool plug_in_watch(void (*on_end)(void));

// Each says one line. Texts are ASCII without quotes and backslashes.
void plug_in_wait(const char *what);
void plug_in_retry(const char *why);
void plug_in_cancel(const char *why);

/// One value of the data for the server.
struct plug_in_value {
  const char *name;
  const unsigned char *bytes;
  size_t size;
};

/// Answers with a JSON object of the values in Base64, and with what the token keeps (none for size 0).
void plug_in_answer(
    const struct plug_in_value *values, size_t count, const unsigned char *registration, size_t registration_size);
