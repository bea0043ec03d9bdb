#include <algorithm>
#include <set>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

using Set = std::set<CoordinateId>;

// Everything whose value follows from the coordinates of `known`, going back through one-to-one views.
Set closure(const Graph& graph, Set known) {
  bool grown = true;
  while (grown) {
    const std::size_t before = known.size();
    for (const Step& step : graph.steps()) {
      switch (step.primitive) {
        case Primitive::kShift:
        case Primitive::kStride:
        case Primitive::kSplit:
          if (known.contains(step.out[0])) {
            for (const CoordinateId in : step.in) {
              if (in != kNoCoordinate) known.insert(in);
            }
          }
          break;
        case Primitive::kMerge:
          if (known.contains(step.out[0]) && known.contains(step.out[1])) known.insert(step.in[0]);
          break;
        default: break;
      }
      // Forwards: whatever is computed from known coordinates alone.
      const bool computed = step.primitive != Primitive::kReduce &&
                            step.primitive != Primitive::kShare && known.contains(step.in[0]) &&
                            (step.in[1] == kNoCoordinate || known.contains(step.in[1]));
      for (const CoordinateId out : step.out) {
        if (computed && out != kNoCoordinate) known.insert(out);
      }
    }
    grown = known.size() > before;
  }
  return known;
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kShare || c.graph.weights().empty()) return false;
  Set fresh;
  for (const SharedDim& dim : c.step.dims) fresh.insert(dim.coordinate);
  const Set from_fresh = closure(c.graph, fresh);
  const auto inside = [](const auto& dims, const Set& known) {
    return std::all_of(dims.begin(), dims.end(),
                       [&](CoordinateId id) { return known.contains(id); });
  };
  for (const Weight& weight : c.graph.weights()) {
    if (inside(weight.dims, from_fresh)) return true;
    if (inside(fresh, closure(c.graph, Set(weight.dims.begin(), weight.dims.end())))) return true;
  }
  return false;
}

}  // namespace

const Rule kAbsorbedWeight{
    .id = "R16",
    .name = "absorbed-weight",
    .kind = RuleKind::kRestriction,
    .doc = R"(What:      no weight whose index follows from the index of another weight
Why:       A[o]*B[o,i] takes the values of one weight B'[o,i] and no others: the same maps, over-parameterised
When:      always
Soundness: restriction: span-equal forms (E5) train differently but realise the same maps
Status:    stable since 0.1
Example:   contract(o keep, i keep); contract(o join) is left out)",
    .matches = matches,
    .rewrite = nullptr,
};

}  // namespace syno
