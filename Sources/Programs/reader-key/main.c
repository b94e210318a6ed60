// SPDX-License-Identifier: Apache-2.0
#include "reader_key.h"

int main(void) { return reader_key_run(&reader_key_any); }
