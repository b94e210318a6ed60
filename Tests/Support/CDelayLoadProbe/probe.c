// SPDX-License-Identifier: Apache-2.0
#include "CDelayLoadProbe.h"

int curl_msnprintf(char *text, size_t size, const char *format, ...);
void approval_missing_function(void);
void approval_of_missing_library(void);

void approval_probe_arguments(char *text, size_t size) {
  curl_msnprintf(text, size, "%d %d %d %d %d %d %d %d|%.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f|%s", 1, 2, 3, 4, 5, 6, 7, 8, 1.5, 2.5,
                 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, "end");
}

void approval_probe_missing_library(void) { approval_of_missing_library(); }

void approval_probe_missing_function(void) { approval_missing_function(); }
