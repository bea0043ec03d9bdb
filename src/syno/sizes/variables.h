// Variable tables. A table holds the names that sizes are made of, in one canonical order, so that nothing depends on
// the order in which variables were declared.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace syno {

/// How many different variables one specification or operator may use.
inline constexpr std::size_t kMaxVariables = 16;

class Variables;
using VariablesPtr = std::shared_ptr<const Variables>;

class Variables {
 public:
  /// Sorts and deduplicates `names`. Throws UserError for more than kMaxVariables or a malformed name.
  static VariablesPtr make(std::vector<std::string> names);

  std::size_t count() const { return names_.size(); }
  const std::string& name(std::size_t index) const { return names_[index]; }
  const std::vector<std::string>& names() const { return names_; }
  std::optional<std::size_t> find(std::string_view name) const;
  /// The index of `name`; throws UserError that lists the known names.
  std::size_t index(std::string_view name) const;
  /// A hash of the name alone.
  std::uint64_t name_hash(std::size_t index) const { return hashes_[index]; }

  friend bool operator==(const Variables& a, const Variables& b) { return a.names_ == b.names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::uint64_t> hashes_;
};

/// The values of the variables of a table, by index. 0 stands for "no value".
using Values = std::vector<std::int64_t>;

/// Positive integers by variable name: one layer of a network that an operator may replace.
class Binding {
 public:
  Binding() = default;
  /// Throws UserError for zero and negative values and malformed names.
  explicit Binding(std::map<std::string, std::int64_t> values);
  /// "C_in=64, H=56".
  static Binding parse(std::string_view text);

  const std::map<std::string, std::int64_t>& values() const { return values_; }
  std::string text() const;
  /// Values in the order of `variables`; names that the table does not hold are ignored, missing ones are an error.
  Values resolve(const Variables& variables) const;

  friend bool operator==(const Binding&, const Binding&) = default;
  friend auto operator<=>(const Binding& a, const Binding& b) { return a.values_ <=> b.values_; }

 private:
  std::map<std::string, std::int64_t> values_;
};

}  // namespace syno
