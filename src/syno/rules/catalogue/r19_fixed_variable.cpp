#include <algorithm>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool has_fixed_variable(const Specification& spec, const Size& size) {
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    if (spec.variable(v).primary && spec.variable(v).budget == 0 && size.power(v) != 0) return true;
  }
  return false;
}

bool in_shape(const Shape& shape, const Size& size) {
  return std::any_of(shape.begin(), shape.end(),
                     [&](const Dimension& dim) { return dim.size == size; });
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kMerge) return false;
  const Size quotient = c.graph.extent(c.step.in[0]) / c.step.size;
  for (const Size& size : {quotient, c.step.size}) {
    if (has_fixed_variable(c.spec, size) && !in_shape(c.spec.input(), size) &&
        !in_shape(c.spec.output(), size))
      return true;
  }
  return false;
}

}  // namespace

const Rule kFixedVariable{
    .id = "R19",
    .name = "fixed-variable",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      A Merge is left out if it makes a new size with a variable of budget 0.
Why:       With a budget of 0, a variable occurs in no new size. Only products that Splits make may contain it, and a
           Merge takes these apart into sizes of the input and the output again.
When:      Always.
Soundness: restriction. With H: 0, H is not cut into blocks, but s*H is cut into H and s.
Status:    unreleased, new after 0.1
Example:   merge(h:[H], s) is left out; split(h, r:[s]) -> c; merge(c, s) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kFixedSizes},
    .version = "ae62f0fe",
};

}  // namespace syno
