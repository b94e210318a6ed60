// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of OpenSSL and Linux for the load client that Swift cannot call directly: macros, and declarations that
// glibc hides behind _GNU_SOURCE.
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

/// A client context that trusts the authorities in one PEM file; NULL if it cannot be read.
static inline SSL_CTX *bench_tls_context(const char *authorities) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (!context) return NULL;
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  if (SSL_CTX_load_verify_locations(context, authorities, NULL) == 1) return context;
  SSL_CTX_free(context);
  return NULL;
}

/// The client's TLS object for a connected socket; the server must prove the identity `address`.
static inline SSL *bench_tls_open(SSL_CTX *context, int descriptor, const char *address) {
  SSL *tls = SSL_new(context);
  if (!tls) return NULL;
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), address) == 1 && SSL_set_fd(tls, descriptor) == 1) {
    SSL_set_connect_state(tls);
    return tls;
  }
  SSL_free(tls);
  return NULL;
}

/// A server's context with its certificate and key, both in one PEM file; NULL if they cannot be read.
static inline SSL_CTX *bench_tls_server_context(const char *identity) {
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  if (!context) return NULL;
  if (SSL_CTX_use_certificate_chain_file(context, identity) == 1 &&
      SSL_CTX_use_PrivateKey_file(context, identity, SSL_FILETYPE_PEM) == 1)
    return context;
  SSL_CTX_free(context);
  return NULL;
}

/// The server's TLS object for a connected blocking socket, after the handshake; NULL if that failed.
static inline SSL *bench_tls_accept(SSL_CTX *context, int descriptor) {
  SSL *tls = SSL_new(context);
  if (tls && SSL_set_fd(tls, descriptor) == 1 && SSL_accept(tls) == 1) return tls;
  SSL_free(tls);
  ERR_clear_error();
  return NULL;
}

static inline int bench_watch(int epoll, int operation, int descriptor, unsigned int events) {
  struct epoll_event event = {.events = events, .data = {.fd = descriptor}};
  return epoll_ctl(epoll, operation, descriptor, &event);
}

/// Ready descriptors and their events; waits for at most `nanoseconds`.
static inline int bench_wait(int epoll, int *descriptors, unsigned int *events, int capacity, long nanoseconds) {
  struct epoll_event ready[256];
  struct timespec limit = {nanoseconds / 1000000000L, nanoseconds % 1000000000L};
  int count = epoll_pwait2(epoll, ready, capacity < 256 ? capacity : 256, &limit, NULL);
  for (int index = 0; index < count; index++) {
    descriptors[index] = ready[index].data.fd;
    events[index] = ready[index].events;
  }
  return count;
}

/// The position of `mark` in `bytes`, or NULL.
static inline const void *bench_find(const void *bytes, size_t count, const void *mark, size_t length) {
  for (const char *from = bytes, *end = from + count; from + length <= end; from++) {
    from = memchr(from, *(const char *)mark, (size_t)(end - from));
    if (!from || from + length > end) return NULL;
    if (memcmp(from, mark, length) == 0) return from;
  }
  return NULL;
}

static inline int bench_set_blocking(int descriptor) { return fcntl(descriptor, F_SETFL, 0); }

static inline int bench_set_nonblocking(int descriptor) { return fcntl(descriptor, F_SETFL, O_NONBLOCK); }
