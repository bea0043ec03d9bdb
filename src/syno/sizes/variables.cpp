#include "syno/sizes/variables.h"

#include <algorithm>
#include <cctype>

#include "syno/support/error.h"
#include "syno/support/hash.h"
#include "syno/support/text.h"

namespace syno {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && Cursor::is_name_start(text.front()) &&
         std::all_of(text.begin(), text.end(), Cursor::is_name_rest);
}

// Lower-case names first: by custom they are the coefficients, and "s^-1*C_in" reads as in the paper.
bool canonical_less(const std::string& a, const std::string& b) {
  const bool upper_a = std::isupper(static_cast<unsigned char>(a.front())) != 0;
  const bool upper_b = std::isupper(static_cast<unsigned char>(b.front())) != 0;
  return upper_a != upper_b ? upper_b : a < b;
}

}  // namespace

VariablesPtr Variables::make(std::vector<std::string> names) {
  for (const std::string& name : names) {
    if (!is_name(name)) {
      throw UserError("malformed variable name '" + name +
                      "'\n  expected: a letter or underscore, then letters, digits, underscores");
    }
  }
  std::sort(names.begin(), names.end(), canonical_less);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kMaxVariables) {
    throw UserError("too many variables: at most " + std::to_string(kMaxVariables) +
                    " are supported, got " + std::to_string(names.size()) +
                    "\n  what to do: leave out those that no size needs");
  }
  auto table = std::make_shared<Variables>();
  table->names_ = std::move(names);
  for (const std::string& name : table->names_)
    table->hashes_.push_back(Hasher("variable").add(name).finish().low);
  return table;
}

std::optional<std::size_t> Variables::find(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return i;
  }
  return std::nullopt;
}

std::size_t Variables::index(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  throw UserError("unknown variable '" + std::string(name) +
                  "'\n  known variables: " + (names_.empty() ? "none" : join(names_, ", ")));
}

Binding::Binding(std::map<std::string, std::int64_t> values) : values_(std::move(values)) {
  for (const auto& [name, value] : values_) {
    if (!is_name(name)) throw UserError("malformed variable name '" + name + "' in a binding");
    if (value <= 0) {
      throw UserError("variable '" + name + "' is bound to " + std::to_string(value) +
                      "\n  expected: a positive integer      got: " + std::to_string(value));
    }
  }
}

Binding Binding::parse(std::string_view text) {
  Cursor cursor(text, "binding");
  std::map<std::string, std::int64_t> values;
  bool more = !cursor.at_end();
  while (more) {
    const std::size_t column = cursor.column();
    const std::string name = cursor.name("of a variable");
    cursor.expect('=', "after the variable's name");
    const std::size_t value_column = cursor.column();
    const std::int64_t value = cursor.integer("as the value of '" + name + "'");
    if (value <= 0)
      cursor.fail_at(
          "the value of '" + name + "' must be a positive integer, got " + std::to_string(value),
          value_column);
    if (!values.emplace(name, value).second)
      cursor.fail_at("variable '" + name + "' is bound twice", column);
    more = !cursor.at_end();
    if (more) cursor.expect(',', "between two variables");
  }
  return Binding(std::move(values));
}

std::string Binding::text() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values_) parts.push_back(name + "=" + std::to_string(value));
  return join(parts, ", ");
}

Values Binding::resolve(const Variables& variables) const {
  Values result(variables.count(), 0);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < variables.count(); ++i) {
    const auto found = values_.find(variables.name(i));
    if (found == values_.end()) {
      missing.push_back(variables.name(i));
    } else {
      result[i] = found->second;
    }
  }
  if (!missing.empty()) {
    throw UserError("the binding gives no value to " + join(missing, ", ") + "\n  in binding \"" +
                    text() + "\"" + "\n  expected: a value for each of " +
                    join(variables.names(), ", "));
  }
  return result;
}

}  // namespace syno
