// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

// The functions of docs/pin.md as an attacker would write them: without a search for an algorithm, or memory, for each
// guess. SHA-256 is that of libcrypto.

void attack_sha256(const uint8_t *bytes, size_t count, uint8_t digest[32]);
/// HMAC-SHA-256 (RFC 2104).
void attack_hmac(const uint8_t *key, size_t key_count, const uint8_t *message, size_t count, uint8_t tag[32]);
/// scrypt (RFC 7914) with N = 1 << log_cost, 32 bytes. Ends the process if there is no memory.
void attack_scrypt(
  const uint8_t *password, size_t password_count, const uint8_t *salt, size_t salt_count, unsigned log_cost,
  unsigned block_size, unsigned parallelization, uint8_t key[32]);
