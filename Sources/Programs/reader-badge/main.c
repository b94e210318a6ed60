// SPDX-License-Identifier: Apache-2.0
#include "reader_badge.h"

int main(void) { return reader_badge_run(); }
