#include <algorithm>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kShare) return false;
  for (const Weight& weight : c.graph.weights()) {
    const bool inside =
        std::all_of(c.step.dims.begin(), c.step.dims.end(),
                    [&](const SharedDim& dim) { return weight.holds(dim.coordinate); });
    const bool around = std::all_of(weight.dims.begin(), weight.dims.end(), [&](CoordinateId id) {
      return std::any_of(c.step.dims.begin(), c.step.dims.end(),
                         [&](const SharedDim& dim) { return dim.coordinate == id; });
    });
    if (inside || around) return true;
  }
  return false;
}

}  // namespace

const Rule kAbsorbedWeight{
    .id = "R16",
    .name = "absorbed-weight",
    .kind = RuleKind::kRestriction,
    .doc = R"(What:      no weight all of whose coordinates another weight holds
Why:       A[o]*B[o,i] takes the values of one weight B'[o,i] and no others: the same maps, over-parameterised
When:      always
Soundness: restriction: span-equal forms (E5) train differently but realise the same maps
Status:    stable since 0.1
Example:   contract(o keep, i keep); contract(o drop) is left out)",
    .matches = matches,
    .rewrite = nullptr,
};

}  // namespace syno
