// SPDX-License-Identifier: Apache-2.0
// The functions of OpenSSL that replace these search for the algorithm at each call.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "COfflineAttack.h"
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

void attack_sha256(const uint8_t *bytes, size_t count, uint8_t digest[32]) {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes, count);
  SHA256_Final(digest, &context);
}

// The states after the padded key: they serve for each message under it.
struct keyed {
  SHA256_CTX inner, outer;
};

static struct keyed keyed_with(const uint8_t *key, size_t count) {
  uint8_t padded[64] = {0};
  if (count > 64)
    attack_sha256(key, count, padded);
  else if (count > 0)
    memcpy(padded, key, count);
  struct keyed states;
  SHA256_Init(&states.inner);
  SHA256_Init(&states.outer);
  for (int i = 0; i < 64; i++) padded[i] ^= 0x36;
  SHA256_Update(&states.inner, padded, 64);
  for (int i = 0; i < 64; i++) padded[i] ^= 0x36 ^ 0x5C;
  SHA256_Update(&states.outer, padded, 64);
  return states;
}

// The tag of two parts of a message.
static void tag_of(
  const struct keyed *states, const uint8_t *message, size_t count, const uint8_t *rest, size_t rest_count, uint8_t tag[32]) {
  SHA256_CTX context = states->inner;
  SHA256_Update(&context, message, count);
  SHA256_Update(&context, rest, rest_count);
  SHA256_Final(tag, &context);
  context = states->outer;
  SHA256_Update(&context, tag, 32);
  SHA256_Final(tag, &context);
}

void attack_hmac(const uint8_t *key, size_t key_count, const uint8_t *message, size_t count, uint8_t tag[32]) {
  struct keyed states = keyed_with(key, key_count);
  tag_of(&states, message, count, NULL, 0, tag);
}

// PBKDF2 with one iteration (RFC 8018 §5.2). `count` is a multiple of 32.
static void stretch(const struct keyed *states, const uint8_t *salt, size_t salt_count, uint8_t *target, size_t count) {
  for (size_t block = 0; block < count / 32; block++) {
    const uint32_t number = (uint32_t)block + 1;
    const uint8_t index[4] = {number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255};
    tag_of(states, salt, salt_count, index, 4, target + 32 * block);
  }
}

static uint32_t rotated(uint32_t word, int by) { return word << by | word >> (32 - by); }

static void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
  *b ^= rotated(*a + *d, 7);
  *c ^= rotated(*b + *a, 9);
  *d ^= rotated(*c + *b, 13);
  *a ^= rotated(*d + *c, 18);
}

// The core Salsa20/8 (RFC 7914 §3).
static void salsa(uint32_t block[16]) {
  uint32_t x[16];
  memcpy(x, block, 64);
  for (int i = 0; i < 4; i++) {
    quarter(x + 0, x + 4, x + 8, x + 12);
    quarter(x + 5, x + 9, x + 13, x + 1);
    quarter(x + 10, x + 14, x + 2, x + 6);
    quarter(x + 15, x + 3, x + 7, x + 11);
    quarter(x + 0, x + 1, x + 2, x + 3);
    quarter(x + 5, x + 6, x + 7, x + 4);
    quarter(x + 10, x + 11, x + 8, x + 9);
    quarter(x + 15, x + 12, x + 13, x + 14);
  }
  for (int i = 0; i < 16; i++) block[i] += x[i];
}

// scryptBlockMix (RFC 7914 §4) of `blocks` blocks of 16 words; `spare` has room for as many.
static void mix_blocks(uint32_t *words, uint32_t *spare, size_t blocks) {
  uint32_t x[16];
  memcpy(x, words + 16 * (blocks - 1), 64);
  for (size_t block = 0; block < blocks; block++) {
    for (int i = 0; i < 16; i++) x[i] ^= words[16 * block + i];
    salsa(x);
    memcpy(spare + 16 * (block / 2 + (block & 1 ? blocks / 2 : 0)), x, 64);
  }
  memcpy(words, spare, 64 * blocks);
}

// scryptROMix (RFC 7914 §5). The words are little-endian, as are the machines of these tests.
static void mix(uint32_t *words, uint32_t *table, uint32_t *spare, size_t cost, size_t blocks) {
  const size_t count = 16 * blocks;
  for (size_t step = 0; step < cost; step++) {
    memcpy(table + step * count, words, 4 * count);
    mix_blocks(words, spare, blocks);
  }
  for (size_t step = 0; step < cost; step++) {
    const uint32_t *chosen = table + (words[16 * (blocks - 1)] & (cost - 1)) * count;
    for (size_t i = 0; i < count; i++) words[i] ^= chosen[i];
    mix_blocks(words, spare, blocks);
  }
}

void attack_scrypt(
  const uint8_t *password, size_t password_count, const uint8_t *salt, size_t salt_count, unsigned log_cost,
  unsigned block_size, unsigned parallelization, uint8_t key[32]) {
  const size_t cost = (size_t)1 << log_cost, blocks = 2 * block_size, bytes = 64 * blocks;
  // Enough for the cheap parameters of the tests.
  uint32_t small[8192];
  const size_t needed = bytes * (cost + 1 + parallelization);
  uint32_t *memory = needed <= sizeof small ? small : malloc(needed);
  if (!memory) abort();
  uint32_t *spare = memory + cost * bytes / 4, *words = spare + bytes / 4;
  const struct keyed states = keyed_with(password, password_count);
  stretch(&states, salt, salt_count, (uint8_t *)words, bytes * parallelization);
  for (size_t lane = 0; lane < parallelization; lane++) mix(words + lane * bytes / 4, memory, spare, cost, blocks);
  stretch(&states, (const uint8_t *)words, bytes * parallelization, key, 32);
  if (memory != small) free(memory);
}
