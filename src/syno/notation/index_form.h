// Index expressions in normal form: sums of coefficient times atom plus offsets, kept once each.
//
//     form   := term + ... + offset + ...
//     term   := times * size * atom              atom := leaf | form div size | form mod size
//     offset := times * scale * (of div 2)  or  times * scale
//
// A leaf is an iterator of the output or an index that is summed over. Nothing is rewritten that could lose what the
// text says: floor((a*C)/g) stays a quotient, although it may be exact.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syno/sizes/size.h"
#include "syno/sizes/variables.h"

namespace syno::notation {

using FormId = int;

/// Why an expression is no index: thrown by the arithmetic, and given its place by who reads the text.
struct NoIndex {
  std::string why;
  std::string hint;
};

enum class AtomKind : std::uint8_t { kLeaf, kQuotient, kRemainder };

struct Atom {
  AtomKind kind = AtomKind::kLeaf;
  /// The leaf's number, or the form that is divided.
  int of = 0;
  Size size;
  friend auto operator<=>(const Atom&, const Atom&) = default;
};

struct Term {
  int atom = 0;
  Size size;
  std::int64_t times = 1;
  friend auto operator<=>(const Term&, const Term&) = default;
};

struct Offset {
  Size scale;
  /// Whether it is scale * (of div 2) rather than scale.
  bool half = false;
  Size of;
  std::int64_t times = 1;
  friend auto operator<=>(const Offset&, const Offset&) = default;
};

struct Form {
  std::vector<Term> terms;
  std::vector<Offset> offsets;
  friend auto operator<=>(const Form&, const Form&) = default;
};

class Forms {
 public:
  /// values: of variables that stand for numbers in the text, such as s=2 for `2*h`.
  Forms(VariablesPtr variables, std::map<std::string, std::int64_t> values);

  const Variables& variables() const { return *variables_; }
  const Form& at(FormId id) const { return forms_[static_cast<std::size_t>(id)]; }
  const Atom& atom(int id) const { return atoms_[static_cast<std::size_t>(id)]; }
  const std::vector<Atom>& atoms() const { return atoms_; }

  /// Sorts, adds up and drops what is zero.
  FormId intern(Form form);
  FormId leaf(int number, std::string name);
  FormId integer(std::int64_t value);
  FormId size(const Size& size);
  FormId quotient_of(FormId of, const Size& size);
  FormId remainder_of(FormId of, const Size& size);
  /// One atom, once.
  FormId single(int atom);

  // Throw NoIndex.
  FormId add(FormId a, FormId b, std::int64_t sign = 1);
  FormId multiply(FormId a, FormId b);
  FormId divide(FormId a, FormId b);
  FormId modulo(FormId a, FormId b);
  FormId power(FormId a, std::int64_t exponent);
  /// The size that a form without indices is.
  Size as_size(FormId id) const;
  /// The size that a number is: 1, or a power of the one variable that has such a value.
  std::optional<Size> as_size(std::int64_t number) const;

  /// The integer part of the offsets.
  std::int64_t whole(FormId id) const;
  /// The one leaf that a form is, or -1.
  int only_leaf(FormId id) const;
  bool is_constant(FormId id) const { return at(id).terms.empty(); }
  /// Every leaf in it, once for each place.
  void leaves(FormId id, std::vector<int>& found, int limit = 1000) const;

  std::string text(FormId id) const;
  /// The value for values of the leaves and variables; nothing where a size has none.
  std::optional<std::int64_t> evaluate(FormId id, const std::vector<std::int64_t>& leaves,
                                       const Values& values) const;

 private:
  int intern_atom(const Atom& atom);
  std::string atom_text(int id) const;

  VariablesPtr variables_;
  std::map<std::string, std::int64_t> values_;
  std::vector<Form> forms_;
  /// How large each form is when it is written out.
  std::vector<int> parts_;
  std::map<Form, FormId> form_ids_;
  std::vector<Atom> atoms_;
  std::map<Atom, int> atom_ids_;
  std::vector<std::string> leaf_names_;
};

}  // namespace syno::notation
