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
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

/// The P-256 key pair of a scalar of 32 bytes and an uncompressed point of 65 bytes. NULL if the point is not on the
/// curve; whether it is that of the scalar is not checked. The caller frees the key.
static inline EVP_PKEY *approval_p256_key(const unsigned char *scalar, const unsigned char *point) {
  EVP_PKEY *key = NULL;
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  BIGNUM *number = BN_bin2bn(scalar, 32, NULL);
  unsigned char native[32];
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"P-256", 0),
      OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, native, sizeof native),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, 65),
      OSSL_PARAM_construct_end(),
  };
  if (context == NULL || number == NULL || BN_bn2nativepad(number, native, sizeof native) != sizeof native ||
      EVP_PKEY_fromdata_init(context) != 1 || EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, parameters) != 1)
    key = NULL;
  OPENSSL_cleanse(native, sizeof native);
  BN_clear_free(number);
  EVP_PKEY_CTX_free(context);
  return key;
}
