// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <curl/curl.h>
#include <sys/prctl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call.
CURLcode approval_curl_set_long(CURL *handle, CURLoption option, long value);
CURLcode approval_curl_set_off(CURL *handle, CURLoption option, curl_off_t value);
CURLcode approval_curl_set_text(CURL *handle, CURLoption option, const char *value);
CURLcode approval_curl_set_pointer(CURL *handle, CURLoption option, void *value);
CURLcode approval_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value);
typedef size_t (*approval_curl_data_callback)(char *bytes, size_t size, size_t count, void *context);
CURLcode approval_curl_set_data_callback(CURL *handle, CURLoption option, approval_curl_data_callback callback);
typedef CURLcode (*approval_curl_tls_callback)(CURL *handle, void *tls_context, void *context);
CURLcode approval_curl_set_tls_callback(CURL *handle, approval_curl_tls_callback callback);
CURLcode approval_curl_set_start_callback(CURL *handle, curl_prereq_callback callback);
CURLcode approval_curl_get_long(CURL *handle, CURLINFO info, long *value);
CURLcode approval_curl_get_pointer(CURL *handle, CURLINFO info, void **value);
CURLMcode approval_curl_multi_set_long(CURLM *multi, CURLMoption option, long value);
