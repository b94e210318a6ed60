// SPDX-License-Identifier: Apache-2.0
// The functions of libssl that are used.
#include "CDelayLoad.h"

APPROVAL_LIBRARY "libssl.so.3", "libssl3"
APPROVAL_FUNCTION SSL_CTX_clear_options
APPROVAL_FUNCTION SSL_CTX_ctrl
APPROVAL_FUNCTION SSL_CTX_free
APPROVAL_FUNCTION SSL_CTX_get0_param
APPROVAL_FUNCTION SSL_CTX_load_verify_file
APPROVAL_FUNCTION SSL_CTX_new
APPROVAL_FUNCTION SSL_CTX_set_cert_verify_callback
APPROVAL_FUNCTION SSL_CTX_set_default_verify_dir
APPROVAL_FUNCTION SSL_CTX_set_verify
APPROVAL_FUNCTION SSL_is_init_finished
APPROVAL_FUNCTION TLS_client_method
