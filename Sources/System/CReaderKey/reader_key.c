// SPDX-License-Identifier: Apache-2.0
#include "reader_key.h"

#include <fido/es256.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "plug_in.h"

enum {
  key_size = 64,  // X and Y of the point
  smallest_authenticator_data = 37,
  largest_kept = 1024,
  most_retries = 9,  // each has up to three lines, and the token ends a use with more than 32
};

static void pause_ms(long milliseconds) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&left, NULL);
}

// MARK: The key

/// The key that waits for a touch, for `on_end`.
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static fido_dev_t *waiting;
static bool is_over;

/// The token does not want an answer any more.
static void on_end(void) {
  // The key stops blinking, and the main thread ends the program. A key ignores a cancellation before the call, so that
  // it is repeated.
  for (int count = 0; count < 10; count++) {
    pthread_mutex_lock(&guard);
    is_over = true;
    if (waiting) fido_dev_cancel(waiting);
    pthread_mutex_unlock(&guard);
    pause_ms(100);
  }
  _exit(0);
}

static bool begin_wait(fido_dev_t *device) {
  pthread_mutex_lock(&guard);
  bool is_wanted = !is_over;
  if (is_wanted) waiting = device;
  pthread_mutex_unlock(&guard);
  return is_wanted;
}

static void end_wait(void) {
  pthread_mutex_lock(&guard);
  waiting = NULL;
  if (is_over) _exit(0);
  pthread_mutex_unlock(&guard);
}

/// The private data of one use.
struct use {
  const struct reader_key_source *source;
  const struct plug_in_question *question;
  fido_dev_t *device;
  int retries;
};

/// Says why a try has failed. Returns false after too many.
static bool may_retry(struct use *use, const char *why) {
  if (++use->retries > most_retries) return false;
  plug_in_retry(why);
  return true;
}

/// Opens a key, and waits until one is plugged in or presented. Returns false after too many that cannot be used.
static bool open_key(struct use *use) {
  bool is_said = false;
  while (true) {
    const char *why = NULL;
    if (use->source->open(&use->device, &why) == FIDO_OK) return true;
    if (why && !may_retry(use, why)) return false;
    if (!is_said) plug_in_wait(use->source->wanted());
    is_said = true;
    pause_ms(300);
  }
}

static void close_key(struct use *use) {
  if (!use->device) return;
  fido_dev_close(use->device);
  fido_dev_free(&use->device);
}

/// What the user has to do while the key signs.
static void wait_for_touch(const struct use *use) {
  plug_in_wait(reader_key_is_card(use->device) ? "leave the security key on the reader" : "touch the security key");
}

// MARK: Calls of the key

/// Says why a call failed, and what the user can do. Returns whether it is tried again.
static bool retry(struct use *use, int error) {
  static const struct {
    int error;
    bool is_final;
    const char *why;
  } table[] = {
      {FIDO_ERR_USER_ACTION_TIMEOUT, false, "the security key was not touched in time"},
      {FIDO_ERR_ACTION_TIMEOUT, false, "the security key was not touched in time"},
      {FIDO_ERR_NO_CREDENTIALS, false, "this security key is not the registered one"},
      {FIDO_ERR_INVALID_CREDENTIAL, false, "this security key is not the registered one"},
      {FIDO_ERR_RX, false, "the security key was removed"},
      {FIDO_ERR_TX, false, "the security key was removed"},
      {FIDO_ERR_INVALID_SIG, false, "this security key does not sign with the registered key"},
      {FIDO_ERR_OPERATION_DENIED, true, "refused at the security key"},
      {FIDO_ERR_PIN_REQUIRED, true, "the security key requires its own PIN"},
      {FIDO_ERR_UP_REQUIRED, true, "the security key requires its own PIN or fingerprint"},
      {FIDO_ERR_UNSUPPORTED_ALGORITHM, true, "the security key cannot sign with P-256"},
  };
  const char *why = "the security key does not answer as it should";
  bool is_final = false;
  bool registers = use->question->step == plug_in_register;
  // CTAP2 permits this answer to a key that was not touched in time, too. A request can be denied at the panel.
  if (error == FIDO_ERR_OPERATION_DENIED && !registers) error = FIDO_ERR_USER_ACTION_TIMEOUT;
  // The library has one error for a card that was removed and for one that is still there.
  if (error == FIDO_ERR_RX && reader_key_is_card(use->device) && !reader_key_card_is_removed()) error = FIDO_ERR_INTERNAL;
  for (size_t index = 0; index < sizeof table / sizeof *table; index++) {
    if (table[index].error != error) continue;
    why = table[index].why;
    is_final = table[index].is_final;
  }
  // Not for a request: another key that requires its PIN must not be a denial.
  if (is_final && registers) {
    plug_in_cancel(why);
    return false;
  }
  if (!may_retry(use, why)) return false;
  // Another key, or the same one again: it is opened again.
  close_key(use);
  pause_ms(1000);
  return open_key(use);
}

/// The authenticator data of an assertion without its CBOR header, a byte string. Returns NULL for another form.
static const unsigned char *authenticator_data(const fido_assert_t *assertion, size_t *size) {
  const unsigned char *bytes = fido_assert_authdata_ptr(assertion, 0);
  size_t count = fido_assert_authdata_len(assertion, 0);
  size_t header = 0;
  if (!bytes || count < 2) return NULL;
  if (bytes[0] == 0x58) {
    header = 2;
    *size = bytes[1];
  } else if (bytes[0] == 0x59 && count >= 3) {
    header = 3;
    *size = (size_t)bytes[1] << 8 | bytes[2];
  }
  if (!header || *size != count - header || *size < smallest_authenticator_data) return NULL;
  return bytes + header;
}

/// Lets the key sign the challenge, after a touch, and verifies the signature.
static int get_assertion(
    struct use *use, const unsigned char *key, const unsigned char *id, size_t id_size, fido_assert_t *assertion) {
  const struct plug_in_question *question = use->question;
  int error = fido_assert_set_clientdata_hash(assertion, question->challenge, sizeof question->challenge);
  if (error == FIDO_OK) error = fido_assert_set_rp(assertion, question->server);
  if (error == FIDO_OK) error = fido_assert_allow_cred(assertion, id, id_size);
  if (error == FIDO_OK) error = fido_assert_set_up(assertion, FIDO_OPT_TRUE);
  if (error != FIDO_OK) return error;
  wait_for_touch(use);
  if (!begin_wait(use->device)) _exit(0);
  error = fido_dev_get_assert(use->device, assertion, NULL);
  end_wait();
  if (error != FIDO_OK) return error;
  // For the user: the server decides. A key that lies is reported at once.
  es256_pk_t *public = es256_pk_new();
  error = public ? es256_pk_from_ptr(public, key, key_size) : FIDO_ERR_INTERNAL;
  if (error == FIDO_OK) error = fido_assert_verify(assertion, 0, COSE_ES256, public);
  es256_pk_free(&public);
  return error;
}

/// Gets an assertion, and tries again as long as that makes sense. Returns NULL otherwise.
static fido_assert_t *assertion(struct use *use, const unsigned char *key, const unsigned char *id, size_t id_size) {
  while (true) {
    fido_assert_t *assertion = fido_assert_new();
    int error = assertion ? get_assertion(use, key, id, id_size, assertion) : FIDO_ERR_INTERNAL;
    if (error == FIDO_OK) return assertion;
    fido_assert_free(&assertion);
    if (!retry(use, error)) return NULL;
  }
}

/// Makes a key pair in the security key, after a touch.
static int make_credential(struct use *use, fido_cred_t *credential) {
  const struct plug_in_question *question = use->question;
  unsigned char user[16];
  if (getrandom(user, sizeof user, 0) != sizeof user) return FIDO_ERR_INTERNAL;
  int error = fido_cred_set_type(credential, COSE_ES256);
  if (error == FIDO_OK)
    error = fido_cred_set_clientdata_hash(credential, question->challenge, sizeof question->challenge);
  if (error == FIDO_OK) error = fido_cred_set_rp(credential, question->server, "Approval Token");
  if (error == FIDO_OK) error = fido_cred_set_user(credential, user, sizeof user, "user", NULL, NULL);
  if (error != FIDO_OK) return error;
  wait_for_touch(use);
  if (!begin_wait(use->device)) _exit(0);
  error = fido_dev_make_cred(use->device, credential, NULL);
  end_wait();
  return error;
}

// MARK: Steps

/// Answers with an assertion. `key` is for the server if this is a registration.
static int answer(
    const fido_assert_t *assertion, const unsigned char *key, const unsigned char *registration,
    size_t registration_size) {
  size_t size = 0;
  const unsigned char *data = authenticator_data(assertion, &size);
  if (!data) {
    plug_in_cancel("the security key answers in a form that is not known");
    return 1;
  }
  unsigned char point[1 + key_size] = {4};
  memcpy(point + 1, key, key_size);
  struct plug_in_value values[] = {
      {"authenticator_data", data, size},
      {"signature", fido_assert_sig_ptr(assertion, 0), fido_assert_sig_len(assertion, 0)},
      {"public_key", point, sizeof point},
  };
  plug_in_answer(values, registration_size ? 3 : 2, registration, registration_size);
  return 0;
}

static int enroll(struct use *use) {
  fido_cred_t *credential = NULL;
  while (true) {
    credential = fido_cred_new();
    int error = credential ? make_credential(use, credential) : FIDO_ERR_INTERNAL;
    if (error == FIDO_OK && fido_cred_pubkey_len(credential) != key_size) error = FIDO_ERR_UNSUPPORTED_ALGORITHM;
    if (error == FIDO_OK) break;
    fido_cred_free(&credential);
    if (!retry(use, error)) return 1;
  }
  // What the token keeps: the public key and the ID of the credential.
  unsigned char kept[largest_kept];
  size_t id_size = fido_cred_id_len(credential);
  if (id_size == 0 || id_size > sizeof kept - key_size) {
    plug_in_cancel("the security key names its credential with too many bytes");
    return 1;
  }
  memcpy(kept, fido_cred_pubkey_ptr(credential), key_size);
  memcpy(kept + key_size, fido_cred_id_ptr(credential), id_size);
  fido_cred_free(&credential);
  // The second touch proves that the key signs.
  fido_assert_t *proof = assertion(use, kept, kept + key_size, id_size);
  int status = proof ? answer(proof, kept, kept, key_size + id_size) : 1;
  fido_assert_free(&proof);
  return status;
}

static int authenticate(struct use *use) {
  const struct plug_in_question *question = use->question;
  const unsigned char *kept = question->registration;
  fido_assert_t *proof = assertion(use, kept, kept + key_size, question->registration_size - key_size);
  int status = proof ? answer(proof, kept, NULL, 0) : 1;
  fido_assert_free(&proof);
  return status;
}

int reader_key_run(const struct reader_key_source *source) {
  struct plug_in_question question;
  if (!plug_in_read(&question)) return 1;
  if (question.step == plug_in_deregister) {
    plug_in_answer(NULL, 0, NULL, 0);
    return 0;
  }
  // Before the user looks for a key that could not sign.
  if (question.step == plug_in_authenticate && question.registration_size <= key_size) {
    plug_in_cancel("the security key must be registered again");
    return 1;
  }
  if (!plug_in_watch(on_end)) return 1;
  fido_init(FIDO_DISABLE_U2F_FALLBACK);
  struct use use = {source, &question, NULL, 0};
  int status = 1;
  if (open_key(&use)) status = question.step == plug_in_register ? enroll(&use) : authenticate(&use);
  close_key(&use);
  return status;
}
