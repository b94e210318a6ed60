// SPDX-License-Identifier: Apache-2.0
#pragma once
// A C interface of toml++, which is a C++ library of headers only. It reports errors as values. If no memory is
// left, the process ends, as in Swift.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Receives the contents of a document, depth first. Texts are UTF-8 without a final zero, valid during the call only.
struct approval_toml_visitor {
  void *context;
  /// Before each member of a table.
  void (*key)(void *context, const char *text, size_t count);
  void (*string)(void *context, const char *text, size_t count);
  void (*integer)(void *context, int64_t value);
  void (*boolean)(void *context, bool value);
  /// A table, otherwise an array. Its members or elements follow, then the call of `end`.
  void (*begin)(void *context, bool is_table);
  void (*end)(void *context);
};

/// Where a text is not TOML. Line and column count from 1; the column counts Unicode scalars.
struct approval_toml_error {
  uint32_t line;
  uint32_t column;
  char what[256];  // with a final zero
};

/// Parses the text and visits the document's table. The caller bounds the text's size and depth.
/// Returns 0, or -1 with the first error; then nothing was visited, or only a part.
int approval_toml_parse(const char *text, size_t count, const struct approval_toml_visitor *visitor,
                        struct approval_toml_error *error);

#ifdef __cplusplus
}
#endif
