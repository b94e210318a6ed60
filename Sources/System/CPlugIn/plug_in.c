// SPDX-License-Identifier: Apache-2.0
#include "plug_in.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// MARK: Parsing

struct reader {
  char *at, *end;
};

static void skip_space(struct reader *reader) {
  while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t')) reader->at++;
}

static bool take(struct reader *reader, char byte) {
  skip_space(reader);
  if (reader->at == reader->end || *reader->at != byte) return false;
  reader->at++;
  return true;
}

struct text {
  char *at;
  size_t size;
  bool is_plain;
};

/// A string up to its end. One with an escape is not plain: only texts that are skipped may have escapes.
static bool text(struct reader *reader, struct text *text) {
  if (!take(reader, '"')) return false;
  text->at = reader->at;
  text->is_plain = true;
  while (reader->at < reader->end && *reader->at != '"') {
    if ((unsigned char)*reader->at < 0x20) return false;
    if (*reader->at == '\\') {
      text->is_plain = false;
      reader->at++;
      if (reader->at == reader->end) return false;
    }
    reader->at++;
  }
  if (reader->at == reader->end) return false;
  text->size = (size_t)(reader->at - text->at);
  reader->at++;
  return true;
}

static bool is(const struct text *text, const char *wanted) {
  return text->is_plain && text->size == strlen(wanted) && memcmp(text->at, wanted, text->size) == 0;
}

static int base64_digit(char digit) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *found = digit ? strchr(digits, digit) : NULL;
  return found ? (int)(found - digits) : -1;
}

/// Returns the number of bytes, or -1 unless it is padded Base64 of at most `most` bytes. `bytes` can be the text.
static ptrdiff_t decode(const struct text *text, unsigned char *bytes, size_t most) {
  if (!text->is_plain || text->size % 4) return -1;
  size_t size = 0;
  for (size_t at = 0; at < text->size; at += 4) {
    const char *four = text->at + at;
    size_t padding = 0;
    if (at + 4 == text->size) padding = four[3] != '=' ? 0 : four[2] != '=' ? 1 : 2;
    uint32_t bits = 0;
    for (size_t index = 0; index < 4; index++) {
      int digit = index < 4 - padding ? base64_digit(four[index]) : 0;
      if (digit < 0) return -1;
      bits = bits << 6 | (uint32_t)digit;
    }
    if (size + 3 - padding > most) return -1;
    for (size_t index = 0; index < 3 - padding; index++) bytes[size++] = (unsigned char)(bits >> (16 - 8 * index));
  }
  return (ptrdiff_t)size;
}

static bool read_step(const struct text *text, struct plug_in_question *question) {
  static const char *const names[] = {"register", "authenticate", "deregister"};
  for (size_t index = 0; index < 3; index++) {
    if (is(text, names[index])) {
      question->step = (enum plug_in_step)index;
      return true;
    }
  }
  return false;
}

enum { question_milliseconds = 10000 };

enum { has_version = 1, has_step = 2, has_server = 4, has_challenge = 8, has_registration = 16 };

/// Reads the value of a member. Returns its flag, 0 for one that is skipped, or -1.
static int value(struct reader *reader, const struct text *name, struct plug_in_question *question) {
  if (is(name, "v")) return take(reader, '1') ? has_version : -1;
  struct text value;
  if (!text(reader, &value)) return -1;
  if (is(name, "step")) return read_step(&value, question) ? has_step : -1;
  if (is(name, "server")) {
    if (!value.is_plain || value.size == 0 || value.size >= sizeof question->server) return -1;
    if (memchr(value.at, 0, value.size)) return -1;
    memcpy(question->server, value.at, value.size);
    question->server[value.size] = 0;
    return has_server;
  }
  if (is(name, "challenge")) {
    ptrdiff_t size = decode(&value, question->challenge, sizeof question->challenge);
    return size == sizeof question->challenge ? has_challenge : -1;
  }
  if (is(name, "registration")) {
    ptrdiff_t size = decode(&value, (unsigned char *)value.at, plug_in_largest_registration);
    if (size < 0) return -1;
    question->registration = (unsigned char *)value.at;
    question->registration_size = (size_t)size;
    return has_registration;
  }
  return 0;
}

bool plug_in_parse(char *line, size_t size, struct plug_in_question *question) {
  struct reader reader = {line, line + size};
  memset(question, 0, sizeof *question);
  if (size > plug_in_longest_line || !take(&reader, '{')) return false;
  int found = 0;
  do {
    struct text name;
    if (!text(&reader, &name) || !take(&reader, ':')) return false;
    int flag = value(&reader, &name, question);
    if (flag < 0 || (found & flag)) return false;
    found |= flag;
  } while (take(&reader, ','));
  if (!take(&reader, '}')) return false;
  skip_space(&reader);
  int needed = has_version | has_step | has_server | has_challenge;
  return reader.at == reader.end && (found & needed) == needed;
}

static long long milliseconds(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

bool plug_in_read(struct plug_in_question *question) {
  static char line[plug_in_longest_line + 1];
  long long end = milliseconds() + question_milliseconds;
  size_t size = 0;
  while (size < sizeof line) {
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    long long left = end - milliseconds();
    if (left <= 0 || (poll(&input, 1, (int)left) < 0 && errno != EINTR)) return false;
    if (!input.revents) continue;
    ssize_t count = read(STDIN_FILENO, line + size, sizeof line - size);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;
    const char *feed = memchr(line + size, '\n', (size_t)count);
    size += (size_t)count;
    if (feed) return feed + 1 == line + size && plug_in_parse(line, size - 1, question);
  }
  return false;
}

// MARK: The end of the connection

/// The token closes the connection after the answer, too.
static atomic_bool is_answered;

static void *watch(void *on_end) {
  // POLLRDHUP is declared only for _GNU_SOURCE.
  struct pollfd watched = {STDIN_FILENO, POLLIN | 0x2000, 0};
  while (poll(&watched, 1, -1) < 0) {}
  if (!atomic_load(&is_answered)) ((void (*)(void))on_end)();
  return NULL;
}

bool plug_in_watch(void (*on_end)(void)) {
  pthread_t thread;
  return pthread_create(&thread, NULL, watch, (void *)on_end) == 0 && pthread_detach(thread) == 0;
}

// MARK: Lines

static void say(const char *member, const char *text) {
  printf("{\"%s\":\"%s\"}\n", member, text);
  fflush(stdout);
}

void plug_in_wait(const char *what) { say("waiting", what); }
void plug_in_retry(const char *why) { say("retry", why); }
void plug_in_cancel(const char *why) {
  atomic_store(&is_answered, true);
  say("cancel", why);
  // Nothing follows an answer, also from a handler of signals: see `plug_in_answer`.
  shutdown(STDOUT_FILENO, SHUT_WR);
}

/// Writes Base64 into `text`, which has room for 4 bytes for every 3, and returns its length.
static size_t encode(const unsigned char *bytes, size_t size, char *text) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t length = 0;
  for (size_t at = 0; at < size; at += 3) {
    size_t left = size - at < 3 ? size - at : 3;
    uint32_t bits = (uint32_t)bytes[at] << 16;
    if (left > 1) bits |= (uint32_t)bytes[at + 1] << 8;
    if (left > 2) bits |= bytes[at + 2];
    for (size_t index = 0; index < 4; index++)
      text[length++] = index <= left ? digits[bits >> (18 - 6 * index) & 63] : '=';
  }
  return length;
}

enum { largest_data = 4096 };

void plug_in_answer(
    const struct plug_in_value *values, size_t count, const unsigned char *registration, size_t registration_size) {
  static char data[largest_data + 1];
  // Of the larger one of both.
  static char text[(plug_in_largest_registration + 2) / 3 * 4 + 1];
  size_t size = 0;
  data[size++] = '{';
  for (size_t index = 0; index < count; index++) {
    const struct plug_in_value *value = &values[index];
    size_t length = (value->size + 2) / 3 * 4;
    if (size + strlen(value->name) + length + 8 > largest_data) exit(1);
    size += (size_t)sprintf(data + size, "%s\"%s\":\"", index ? "," : "", value->name);
    size += encode(value->bytes, value->size, data + size);
    data[size++] = '"';
  }
  data[size++] = '}';
  text[encode((unsigned char *)data, size, text)] = 0;
  atomic_store(&is_answered, true);
  printf("{\"data\":\"%s\"", text);
  if (registration_size > 0 && registration_size <= plug_in_largest_registration) {
    text[encode(registration, registration_size, text)] = 0;
    printf(",\"registration\":\"%s\"", text);
  }
  printf("}\n");
  fflush(stdout);
  // The end of the connection, for the token: a service manager that accepted it keeps a descriptor until the process
  // has ended. Not for reading: that would be the token's end for `watch`. Without a socket it has no effect.
  shutdown(STDOUT_FILENO, SHUT_WR);
}
