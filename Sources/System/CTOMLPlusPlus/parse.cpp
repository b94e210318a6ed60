// SPDX-License-Identifier: Apache-2.0
// Errors as values: without this, toml++ throws them.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <string_view>

#include "approval_toml.h"

namespace {

void set_error(approval_toml_error *error, uint32_t line, uint32_t column, std::string_view what) {
  error->line = line;
  error->column = column;
  error->what[what.copy(error->what, sizeof error->what - 1)] = 0;
}

/// Visits the node and what is below it. Returns the first node of a type without a call, or NULL.
const toml::node *visit(const toml::node &node, const approval_toml_visitor &to) {
  if (const auto *string = node.as_string()) {
    to.string(to.context, string->get().data(), string->get().size());
  } else if (const auto *integer = node.as_integer()) {
    to.integer(to.context, integer->get());
  } else if (const auto *boolean = node.as_boolean()) {
    to.boolean(to.context, boolean->get());
  } else if (const auto *array = node.as_array()) {
    to.begin(to.context, false);
    for (const auto &element : *array)
      if (const auto *unknown = visit(element, to)) return unknown;
    to.end(to.context);
  } else if (const auto *table = node.as_table()) {
    to.begin(to.context, true);
    for (const auto &[key, member] : *table) {
      std::string_view name = key;
      to.key(to.context, name.data(), name.size());
      if (const auto *unknown = visit(member, to)) return unknown;
    }
    to.end(to.context);
  } else {
    return &node;
  }
  return nullptr;
}

}  // namespace

extern "C" int approval_toml_parse(const char *text, size_t count, const approval_toml_visitor *visitor,
                                   approval_toml_error *error) {
  const toml::parse_result result = toml::parse(std::string_view(text, count));
  if (!result) {
    const auto &begin = result.error().source().begin;
    set_error(error, begin.line, begin.column, result.error().description());
    return -1;
  }
  if (const auto *unknown = visit(result.table(), *visitor)) {
    set_error(error, unknown->source().begin.line, unknown->source().begin.column, "a value of an unknown type");
    return -1;
  }
  return 0;
}
