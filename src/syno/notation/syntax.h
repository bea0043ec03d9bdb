// What a text in index notation says, before any name has a meaning: stages, sums, factors, conditions, definitions.
// The grammar stands in parse.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace syno::notation {

enum class AstKind : std::uint8_t {
  kNumber,
  kName,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kPower
};

struct Ast;
using AstPtr = std::shared_ptr<const Ast>;

struct Ast {
  AstKind kind = AstKind::kNumber;
  std::int64_t number = 0;
  std::string name;
  AstPtr a;
  AstPtr b;
  /// Where it stands in the text.
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A name with the size that it runs up to; without one the size is inferred.
struct Declared {
  std::string name;
  AstPtr size;
  std::size_t begin = 0;
};

/// tensor[index, ...]
struct Access {
  std::string tensor;
  std::vector<AstPtr> indices;
  /// What stands behind ':' of each index; for the tensor that a stage makes.
  std::vector<AstPtr> sizes;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// 0 <= value < extent
struct Condition {
  AstPtr value;
  AstPtr extent;
};

/// target = sum(...) factor * factor ... where ...
struct Stage {
  Access target;
  std::vector<Declared> sums;
  std::vector<Access> factors;
  std::vector<Condition> conditions;
};

/// name = value
struct Definition {
  std::string name;
  AstPtr value;
  std::size_t begin = 0;
};

struct FormulaText {
  std::string text;
  std::vector<Stage> stages;
  std::vector<Definition> definitions;
  /// `where c < m`
  std::vector<Declared> declared;

  std::string quote(const Ast& ast) const { return text.substr(ast.begin, ast.end - ast.begin); }
  std::string quote(const Access& access) const {
    return text.substr(access.begin, access.end - access.begin);
  }
  /// Throws UserError that names the line and column.
  [[noreturn]] void fail(const std::string& message, std::size_t at,
                         const std::string& expected = "", const std::string& hint = "") const;
};

/// Throws UserError that names the line and column.
FormulaText read_formula(std::string_view text);

}  // namespace syno::notation
