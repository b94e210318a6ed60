// SPDX-License-Identifier: Apache-2.0
#pragma once
// libcrypto and libssl, as the distribution ships them.
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// libcurl takes the end of a connection for the end of an answer; this asks for TLS's goodbye again (RFC 9112 §9.8).
static inline void approval_ssl_refuse_silent_end(SSL_CTX *context) {
  SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
}
