// SPDX-License-Identifier: Apache-2.0
#pragma once
// libssl, as the distribution ships it.
#include <openssl/ssl.h>

// libcurl takes the end of a connection for the end of an answer; this asks for TLS's goodbye again (RFC 9112 §9.8).
static inline void approval_ssl_refuse_silent_end(SSL_CTX *context) {
  SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
}
