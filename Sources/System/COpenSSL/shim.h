// SPDX-License-Identifier: Apache-2.0
#pragma once
// libcrypto, as the distribution ships it.
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
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

/// Swift does not import this macro.
static const int APPROVAL_EVP_PKEY_KEYPAIR = EVP_PKEY_KEYPAIR;
