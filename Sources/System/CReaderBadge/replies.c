// SPDX-License-Identifier: Apache-2.0
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "reader_badge.h"

struct bytes {
  const unsigned char *at;
  size_t size;
};

/// Takes the next object of one byte's tag and a length of at most two bytes.
static bool take(struct bytes *rest, unsigned char *tag, struct bytes *value) {
  if (rest->size < 2) return false;
  *tag = rest->at[0];
  size_t header = 2, length = rest->at[1];
  if (length > 0x80) {
    size_t count = length - 0x80;
    if (count > 2 || rest->size < 2 + count) return false;
    length = 0;
    for (size_t index = 0; index < count; index++) length = length << 8 | rest->at[header++];
  } else if (length == 0x80) {
    return false;
  }
  if (rest->size - header < length) return false;
  *value = (struct bytes){rest->at + header, length};
  rest->at += header + length;
  rest->size -= header + length;
  return true;
}

/// Finds the first object with the tag.
static bool find(struct bytes in, unsigned char wanted, struct bytes *value) {
  unsigned char tag;
  while (take(&in, &tag, value))
    if (tag == wanted) return true;
  return false;
}

/// The point of a certificate's key.
static bool read_point(struct bytes certificate, unsigned char point[badge_point_size]) {
  const unsigned char *at = certificate.at;
  X509 *parsed = d2i_X509(NULL, &at, (long)certificate.size);
  EVP_PKEY *key = parsed ? X509_get0_pubkey(parsed) : NULL;
  char group[32] = "";
  size_t size = 0;
  bool is_read = key && EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
      OBJ_sn2nid(group) == NID_X9_62_prime256v1 &&
      EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, badge_point_size, &size) == 1 &&
      size == badge_point_size && point[0] == POINT_CONVERSION_UNCOMPRESSED;
  X509_free(parsed);
  ERR_clear_error();
  return is_read;
}

bool badge_read_certificate(
    const unsigned char *reply, size_t size, unsigned char point[badge_point_size], const char **why) {
  struct bytes object, certificate, info;
  *why = "the badge has no certificate for card authentication";
  if (!find((struct bytes){reply, size}, 0x53, &object) || !find(object, 0x70, &certificate)) return false;
  *why = "the certificate of the badge is compressed, which is not supported";
  if (find(object, 0x71, &info) && (info.size != 1 || info.at[0] != 0)) return false;
  *why = "the badge has no P-256 key for card authentication";
  return read_point(certificate, point);
}

bool badge_read_signature(
    const unsigned char *reply, size_t size, const unsigned char **signature, size_t *signature_size) {
  struct bytes template, value;
  // A DER signature with P-256 has 8 to 72 bytes.
  if (!find((struct bytes){reply, size}, 0x7C, &template) || !find(template, 0x82, &value) || value.size < 8 ||
      value.size > 72)
    return false;
  *signature = value.at;
  *signature_size = value.size;
  return true;
}

bool badge_verify(
    const unsigned char point[badge_point_size], const unsigned char digest[32], const unsigned char *signature,
    size_t size) {
  EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  EVP_PKEY *key = NULL;
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"P-256", 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, badge_point_size),
      OSSL_PARAM_construct_end(),
  };
  bool is_made = maker && EVP_PKEY_fromdata_init(maker) == 1 &&
      EVP_PKEY_fromdata(maker, &key, EVP_PKEY_PUBLIC_KEY, parameters) == 1;
  EVP_PKEY_CTX *verifier = is_made ? EVP_PKEY_CTX_new(key, NULL) : NULL;
  bool is_right = verifier && EVP_PKEY_verify_init(verifier) == 1 &&
      EVP_PKEY_verify(verifier, signature, size, digest, 32) == 1;
  EVP_PKEY_CTX_free(verifier);
  EVP_PKEY_free(key);
  EVP_PKEY_CTX_free(maker);
  ERR_clear_error();
  return is_right;
}
