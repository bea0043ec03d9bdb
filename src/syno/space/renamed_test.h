// Specifications under other names, for tests.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "syno/spec/specification.h"

namespace syno::samples {

/// The same specification with other names, declared in another order.
inline SpecificationSource renamed(const SpecificationSource& source,
                                   const std::map<std::string, std::string>& names) {
  const auto rename = [&](const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t end = i;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
      const std::string word = text.substr(i, end - i);
      if (names.contains(word)) {
        result += names.at(word);
      } else {
        result += word;
      }
      if (end == i) result += text[end++];
      i = end;
    }
    return result;
  };
  SpecificationSource result = source;
  result.input = rename(source.input);
  result.output = rename(source.output);
  for (auto* list : {&result.primary, &result.coefficient}) {
    for (std::string& variable : *list) variable = rename(variable);
    std::reverse(list->begin(), list->end());
  }
  for (Binding& binding : result.bindings) {
    std::map<std::string, std::int64_t> values;
    for (const auto& [name, value] : binding.values())
      values[names.contains(name) ? names.at(name) : name] = value;
    binding = Binding(values);
  }
  return result;
}

/// Names whose order is the reverse of the old one.
inline std::map<std::string, std::string> reversed_names(const Specification& spec) {
  std::map<std::string, std::string> names;
  for (std::size_t v = 0; v < spec.variables()->count(); ++v)
    names[spec.variables()->name(v)] =
        std::string(1, static_cast<char>('z' - v)) + "_" + std::to_string(v);
  return names;
}

}  // namespace syno::samples
