#include "syno/notation/index_form.h"

#include <algorithm>

#include "syno/affine/sum_text.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::notation {
namespace {

// A form with more parts than this, those of its quotients counted, is no index of an operator.
constexpr int kMaxParts = 400;

std::int64_t times_of(std::int64_t a, std::int64_t b) {
  return checked_multiply(a, b, "a factor of an index");
}

std::string unnamed(std::int64_t number) {
  return "the number " + std::to_string(number) + " is no size";
}

}  // namespace

Forms::Forms(VariablesPtr variables, std::map<std::string, std::int64_t> values)
    : variables_(std::move(variables)), values_(std::move(values)) {}

FormId Forms::intern(Form form) {
  std::sort(form.terms.begin(), form.terms.end());
  std::sort(form.offsets.begin(), form.offsets.end());
  const auto gather = [](auto& parts, auto same) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (kept > 0 && same(parts[kept - 1], parts[i])) {
        parts[kept - 1].times =
            checked_add(parts[kept - 1].times, parts[i].times, "a factor of an index");
      } else {
        parts[kept++] = parts[i];
      }
    }
    parts.resize(kept);
    std::erase_if(parts, [](const auto& part) { return part.times == 0; });
  };
  gather(form.terms,
         [](const Term& a, const Term& b) { return a.atom == b.atom && a.size == b.size; });
  gather(form.offsets, [](const Offset& a, const Offset& b) {
    return a.scale == b.scale && a.half == b.half && a.of == b.of;
  });
  int parts = 1 + static_cast<int>(form.offsets.size());
  for (const Term& term : form.terms) {
    const Atom& part = atom(term.atom);
    parts += part.kind == AtomKind::kLeaf ? 1 : parts_[static_cast<std::size_t>(part.of)];
    if (parts > kMaxParts) throw NoIndex{"it has too many parts", ""};
  }
  const auto [place, added] = form_ids_.try_emplace(form, static_cast<FormId>(forms_.size()));
  if (added) {
    forms_.push_back(std::move(form));
    parts_.push_back(parts);
  }
  return place->second;
}

int Forms::intern_atom(const Atom& atom) {
  const auto [place, added] = atom_ids_.try_emplace(atom, static_cast<int>(atoms_.size()));
  if (added) atoms_.push_back(atom);
  return place->second;
}

FormId Forms::single(int atom) {
  return intern({{{atom, Size(), 1}}, {}});
}
FormId Forms::leaf(int number, std::string name) {
  if (leaf_names_.size() <= static_cast<std::size_t>(number))
    leaf_names_.resize(static_cast<std::size_t>(number) + 1);
  leaf_names_[static_cast<std::size_t>(number)] = std::move(name);
  return single(intern_atom({AtomKind::kLeaf, number, Size()}));
}
FormId Forms::integer(std::int64_t value) {
  return intern({{}, {{Size(), false, Size(), value}}});
}
FormId Forms::size(const Size& size) {
  return intern({{}, {{size, false, Size(), 1}}});
}
FormId Forms::quotient_of(FormId of, const Size& size) {
  return size.is_one() ? of : single(intern_atom({AtomKind::kQuotient, of, size}));
}
FormId Forms::remainder_of(FormId of, const Size& size) {
  return single(intern_atom({AtomKind::kRemainder, of, size}));
}

FormId Forms::add(FormId a, FormId b, std::int64_t sign) {
  Form sum = at(a);
  for (Term term : at(b).terms) {
    term.times = times_of(term.times, sign);
    sum.terms.push_back(term);
  }
  for (Offset offset : at(b).offsets) {
    offset.times = times_of(offset.times, sign);
    sum.offsets.push_back(offset);
  }
  return intern(std::move(sum));
}

FormId Forms::multiply(FormId a, FormId b) {
  if (!is_constant(b)) std::swap(a, b);
  if (!is_constant(b)) {
    throw NoIndex{"the product of " + text(a) + " and " + text(b) + " is not affine",
                  "an index is multiplied with sizes only"};
  }
  Form product;
  for (const Offset& factor : at(b).offsets) {
    for (Term term : at(a).terms) {
      term.size = term.size * factor.scale;
      if (factor.half) {
        throw NoIndex{text(a) + " is multiplied with " + text(b) + ", which is no size",
                      "define a separate name for the quotient"};
      }
      const std::optional<Size> named =
          factor.times > 1 ? as_size(factor.times) : std::optional<Size>();
      if (named)
        term.size = term.size * *named;
      else
        term.times = times_of(term.times, factor.times);
      product.terms.push_back(term);
    }
    for (Offset offset : at(a).offsets) {
      if (offset.half && factor.half) throw NoIndex{"halves are multiplied", ""};
      if (factor.half)
        offset = {offset.scale * factor.scale, true, factor.of,
                  times_of(offset.times, factor.times)};
      else
        offset = {offset.scale * factor.scale, offset.half, offset.of,
                  times_of(offset.times, factor.times)};
      product.offsets.push_back(offset);
    }
  }
  if (at(b).offsets.size() > 1 && !is_constant(a)) {
    throw NoIndex{text(a) + " is multiplied with " + text(b) + ", which is no size",
                  "an index is multiplied with products of variables"};
  }
  return intern(std::move(product));
}

FormId Forms::divide(FormId a, FormId b) {
  if (!is_constant(b)) throw NoIndex{"it divides by the index " + text(b), "divide by a size"};
  const Form& divisor = at(b);
  const bool two =
      divisor.offsets.size() == 1 && divisor.offsets[0] == Offset{Size(), false, Size(), 2};
  if (is_constant(a)) {
    const Form& form = at(a);
    if (form.offsets.empty()) return a;
    const Offset only = form.offsets[0];
    if (form.offsets.size() == 1 && two && !only.half && only.times == 1 && !only.scale.is_one())
      return intern({{}, {{Size(), true, only.scale, 1}}});
    if (form.offsets.size() == 1 && !only.half && only.scale.is_one() &&
        divisor.offsets.size() == 1 && divisor.offsets[0].scale.is_one() &&
        !divisor.offsets[0].half && divisor.offsets[0].times > 0) {
      return integer(floor_divide(only.times, divisor.offsets[0].times));
    }
    if (two && form.offsets.size() > 1) {
      throw NoIndex{text(a) + "/2 is no size",
                    "a window of size k is centred by -k/2, which equals -(k-1)/2 where k is odd"};
    }
    return size(as_size(a) / as_size(b));
  }
  return quotient_of(a, as_size(b));
}

FormId Forms::modulo(FormId a, FormId b) {
  if (!is_constant(b))
    throw NoIndex{"it takes the remainder by the index " + text(b), "use a size"};
  if (is_constant(a)) throw NoIndex{"the remainder of " + text(a) + " is constant", ""};
  return remainder_of(a, as_size(b));
}

FormId Forms::power(FormId a, std::int64_t exponent) {
  if (!is_constant(a)) throw NoIndex{"a power of the index " + text(a) + " is not affine", ""};
  constexpr std::int64_t kMost = 100;
  if (exponent > kMost || exponent < -kMost)
    throw NoIndex{"the power " + std::to_string(exponent) + " is too large", ""};
  const Size base = as_size(a);
  Size result;
  for (std::int64_t i = 0; i < exponent; ++i) result = result * base;
  for (std::int64_t i = 0; i > exponent; --i) result = result / base;
  return size(result);
}

std::optional<Size> Forms::as_size(std::int64_t number) const {
  if (number == 1) return Size();
  std::optional<Size> found;
  int least = 0;
  for (const auto& [name, value] : values_) {
    // 4 is s^2 where s is 2.
    int power = 0;
    std::int64_t left = number;
    while (value > 1 && left % value == 0) {
      left /= value;
      ++power;
    }
    const auto index = variables_->find(name);
    if (left != 1 || power == 0 || !index) continue;
    // 4 itself rather than 2^2.
    if (found && power > least) continue;
    if (found && power == least) {
      throw NoIndex{unnamed(number) + ": several variables could stand for it",
                    "write the variable that is meant"};
    }
    least = power;
    found = Size::variable(*index, power);
  }
  return found;
}

Size Forms::as_size(FormId id) const {
  const Form& form = at(id);
  if (!form.terms.empty()) throw NoIndex{text(id) + " is an index where a size is expected", ""};
  if (form.offsets.size() != 1 || form.offsets[0].half || form.offsets[0].times < 1) {
    throw NoIndex{"'" + text(id) + "' is no size",
                  "a size is a product of variables, such as C_out/(g*s)"};
  }
  const std::optional<Size> factor = as_size(form.offsets[0].times);
  if (!factor) {
    throw NoIndex{unnamed(form.offsets[0].times),
                  "give the number a name: a variable with this value, such as sizes=\"s=" +
                      std::to_string(form.offsets[0].times) + "\""};
  }
  return form.offsets[0].scale * *factor;
}

std::int64_t Forms::whole(FormId id) const {
  for (const Offset& offset : at(id).offsets) {
    if (!offset.half && offset.scale.is_one()) return offset.times;
  }
  return 0;
}

int Forms::only_leaf(FormId id) const {
  const Form& form = at(id);
  if (form.terms.size() != 1 || !form.offsets.empty()) return -1;
  const Term& term = form.terms[0];
  const Atom& only = atom(term.atom);
  const bool once = term.times == 1 && term.size.is_one() && only.kind == AtomKind::kLeaf;
  return once ? only.of : -1;
}

void Forms::leaves(FormId id, std::vector<int>& found, int limit) const {
  for (const Term& term : at(id).terms) {
    if (static_cast<int>(found.size()) >= limit) return;
    const Atom& part = atom(term.atom);
    if (part.kind == AtomKind::kLeaf) {
      found.push_back(part.of);
    } else {
      leaves(part.of, found, limit);
    }
  }
}

std::string Forms::atom_text(int id) const {
  const Atom& part = atom(id);
  if (part.kind == AtomKind::kLeaf) return leaf_names_[static_cast<std::size_t>(part.of)];
  const std::string of = at(part.of).terms.size() == 1 && at(part.of).offsets.empty()
                             ? text(part.of)
                             : "(" + text(part.of) + ")";
  const std::string by = part.size.variable_count() > 1 ? "(" + part.size.text(variables()) + ")"
                                                        : part.size.text(variables());
  return part.kind == AtomKind::kQuotient ? of + "/" + by : "(" + of + " mod " + by + ")";
}

std::string Forms::text(FormId id) const {
  SumText sum(SumText::Spaces::kNone);
  const auto sized = [&](const Size& size, const std::string& what) {
    if (size.is_one()) return what;
    return what + (what.empty() ? "" : "*") + size.text(variables());
  };
  for (const Term& term : at(id).terms) sum.add(term.times, sized(term.size, atom_text(term.atom)));
  for (const Offset& offset : at(id).offsets) {
    sum.add(offset.times, offset.half ? sized(offset.scale, offset.of.text(variables()) + "/2")
                                      : sized(offset.scale, ""));
  }
  return sum.text();
}

std::optional<std::int64_t> Forms::evaluate(FormId id, const std::vector<std::int64_t>& leaves,
                                            const Values& values) const {
  std::int64_t sum = 0;
  const auto add = [&](std::int64_t times, std::int64_t a, std::int64_t b) {
    sum = checked_add(sum, times_of(times, times_of(a, b)), "an index");
  };
  for (const Term& term : at(id).terms) {
    const Atom& part = atom(term.atom);
    const auto scale = term.size.extent(values);
    std::optional<std::int64_t> value;
    if (part.kind == AtomKind::kLeaf) {
      value = leaves[static_cast<std::size_t>(part.of)];
    } else {
      value = evaluate(part.of, leaves, values);
      const auto by = part.size.extent(values);
      if (!value || !by) return std::nullopt;
      value =
          part.kind == AtomKind::kQuotient ? floor_divide(*value, *by) : floor_modulo(*value, *by);
    }
    if (!value || !scale) return std::nullopt;
    add(term.times, *scale, *value);
  }
  for (const Offset& offset : at(id).offsets) {
    const auto scale = offset.scale.extent(values);
    const auto of = offset.half ? offset.of.extent(values) : std::optional<std::int64_t>(2);
    if (!scale || !of) return std::nullopt;
    add(offset.times, *scale, *of / 2);
  }
  return sum;
}

}  // namespace syno::notation
