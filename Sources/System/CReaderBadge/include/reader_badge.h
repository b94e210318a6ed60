// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plug-in for badges: the card authentication key of a PIV card (slot 9E, P-256, no PIN; NIST SP 800-73-4) signs
// the challenge.
#include <stdbool.h>
#include <stddef.h>

enum { badge_point_size = 65, badge_longest_reply = 8192 };

/// Answers one question on standard input. Returns the exit status.
int reader_badge_run(void);

// What a card says is hostile. Each returns false for what it cannot use.

/// The public key, an uncompressed point of P-256, in the reply to GET DATA of the certificate of slot 9E.
bool badge_read_certificate(
    const unsigned char *reply, size_t size, unsigned char point[badge_point_size], const char **why);

/// The DER signature in the reply to GENERAL AUTHENTICATE; it stays a part of `reply`.
bool badge_read_signature(
    const unsigned char *reply, size_t size, const unsigned char **signature, size_t *signature_size);

/// Whether a signature over the digest was made with the key of the point.
bool badge_verify(
    const unsigned char point[badge_point_size], const unsigned char digest[32], const unsigned char *signature,
    size_t size);
