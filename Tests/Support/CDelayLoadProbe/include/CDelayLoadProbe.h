// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>

/// A function of libcurl with arguments in registers of both kinds and on the stack: writes them to `text`.
void approval_probe_arguments(char *text, size_t size);
/// Calls a function of a library that does not exist.
void approval_probe_missing_library(void);
/// Calls a function that libcurl does not have.
void approval_probe_missing_function(void);
