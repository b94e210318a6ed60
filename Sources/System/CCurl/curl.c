// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded at its first use. Its functions are defined here with their own names, as calls of the loaded ones.
#define CURL_DISABLE_TYPECHECK
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

// The functions without a variable number of arguments: result, name, parameters, arguments.
#define FUNCTIONS(DO) \
  DO(CURL *, curl_easy_init, (void), ()) \
  DO(void, curl_easy_cleanup, (CURL *handle), (handle)) \
  DO(CURLcode, curl_easy_pause, (CURL *handle, int bits), (handle, bits)) \
  DO(CURLcode, curl_easy_perform, (CURL *handle), (handle)) \
  DO(const char *, curl_easy_strerror, (CURLcode code), (code)) \
  DO(const struct curl_easyoption *, curl_easy_option_by_id, (CURLoption option), (option)) \
  DO(CURLM *, curl_multi_init, (void), ()) \
  DO(CURLMcode, curl_multi_cleanup, (CURLM *multi), (multi)) \
  DO(CURLMcode, curl_multi_add_handle, (CURLM *multi, CURL *handle), (multi, handle)) \
  DO(CURLMcode, curl_multi_remove_handle, (CURLM *multi, CURL *handle), (multi, handle)) \
  DO(CURLMcode, curl_multi_perform, (CURLM *multi, int *running), (multi, running)) \
  DO(CURLMcode, curl_multi_poll, (CURLM *multi, struct curl_waitfd *more, unsigned int count, int limit, int *ready), \
     (multi, more, count, limit, ready)) \
  DO(CURLMcode, curl_multi_wakeup, (CURLM *multi), (multi)) \
  DO(CURLMsg *, curl_multi_info_read, (CURLM *multi, int *waiting), (multi, waiting)) \
  DO(struct curl_slist *, curl_slist_append, (struct curl_slist *list, const char *line), (list, line)) \
  DO(void, curl_slist_free_all, (struct curl_slist *list), (list))

#define POINTER(result, name, parameters, arguments) result(*name) parameters;
static struct {
  FUNCTIONS(POINTER)
  CURLcode (*curl_global_init)(long flags);
  CURLcode (*curl_easy_setopt)(CURL *handle, CURLoption option, ...);
  CURLcode (*curl_easy_getinfo)(CURL *handle, CURLINFO info, ...);
  CURLMcode (*curl_multi_setopt)(CURLM *multi, CURLMoption option, ...);
} loaded;

static int is_loaded;

static int find(void *library, const char *name, void *pointer) {
  void *symbol = dlsym(library, name);
  if (!symbol) fprintf(stderr, "libcurl has no %s: it needs version 7.73 or newer\n", name);
  // Through memory: a pointer to data cannot be converted to one to a function.
  *(void **)pointer = symbol;
  return symbol != NULL;
}

static void load(void) {
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "libcurl cannot be loaded: %s\n", dlerror());
    return;
  }
#define FIND(result, name, parameters, arguments) &&find(library, #name, &loaded.name)
  is_loaded = 1 FUNCTIONS(FIND) && find(library, "curl_global_init", &loaded.curl_global_init) &&
              find(library, "curl_easy_setopt", &loaded.curl_easy_setopt) &&
              find(library, "curl_easy_getinfo", &loaded.curl_easy_getinfo) &&
              find(library, "curl_multi_setopt", &loaded.curl_multi_setopt);
}

CURLcode curl_global_init(long flags) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return is_loaded ? loaded.curl_global_init(flags) : CURLE_FAILED_INIT;
}

#define FORWARD(result, name, parameters, arguments) \
  result name parameters { return loaded.name arguments; }
FUNCTIONS(FORWARD)

CURLcode approval_curl_set_long(CURL *handle, CURLoption option, long value) {
  return loaded.curl_easy_setopt(handle, option, value);
}
CURLcode approval_curl_set_off(CURL *handle, CURLoption option, curl_off_t value) {
  return loaded.curl_easy_setopt(handle, option, value);
}
CURLcode approval_curl_set_text(CURL *handle, CURLoption option, const char *value) {
  return loaded.curl_easy_setopt(handle, option, value);
}
CURLcode approval_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return loaded.curl_easy_setopt(handle, option, value);
}
CURLcode approval_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  return loaded.curl_easy_setopt(handle, option, value);
}
CURLcode approval_curl_set_data_callback(CURL *handle, CURLoption option, approval_curl_data_callback callback) {
  return loaded.curl_easy_setopt(handle, option, callback);
}
CURLcode approval_curl_set_tls_callback(CURL *handle, approval_curl_tls_callback callback) {
  return loaded.curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, callback);
}
CURLcode approval_curl_get_long(CURL *handle, CURLINFO info, long *value) {
  return loaded.curl_easy_getinfo(handle, info, value);
}
CURLcode approval_curl_get_pointer(CURL *handle, CURLINFO info, void **value) {
  return loaded.curl_easy_getinfo(handle, info, value);
}
CURLMcode approval_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return loaded.curl_multi_setopt(multi, option, value);
}
