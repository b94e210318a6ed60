// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "reader_key.h"

int main(int count, char *arguments[]) {
  if (count == 1) return reader_key_run(&reader_key_plugged_in);
  if (count == 2 && strcmp(arguments[1], "--cards") == 0) return reader_key_run(&reader_key_any);
  fputs("usage: reader-key [--cards]\n  --cards  also keys in card readers (NFC), which sign without a touch\n", stderr);
  return 64;
}
