#include <utility>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

using Pair = std::pair<CoordinateId, CoordinateId>;

// Two Reduces that the step takes out of the data and that the same weights hold, or nothing.
std::optional<Pair> joined_pair(const RuleContext& c) {
  for (const WeightDim& a : c.step.dims) {
    for (const WeightDim& b : c.step.dims) {
      if (a.coordinate >= b.coordinate || a.role != WeightRole::kJoin ||
          b.role != WeightRole::kJoin || !c.graph.is_reduction(a.coordinate) ||
          !c.graph.is_reduction(b.coordinate))
        continue;
      bool together = true;
      for (const Weight& weight : c.graph.weights())
        together = together && weight.holds(a.coordinate) == weight.holds(b.coordinate);
      if (together) return Pair(a.coordinate, b.coordinate);
    }
  }
  return std::nullopt;
}

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kContraction && joined_pair(c).has_value();
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const std::optional<Pair> pair = joined_pair(c);
  if (!pair) return std::nullopt;
  const CoordinateId a = pair->first;
  const CoordinateId b = pair->second;
  Rebuild rebuild(c);
  const CoordinateId whole =
      rebuild.add(Step::reduce(c.graph.extent(a) * c.graph.extent(b))).out[0];
  const auto without_b = [&](const Step& step) {
    WeightDims dims;
    for (const WeightDim& dim : step.dims) {
      if (dim.coordinate == b) continue;
      dims.push_back({dim.coordinate == a ? whole : rebuild.now(dim.coordinate), dim.role});
    }
    return Step::contract(std::move(dims));
  };
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    if (s == step_of(c.graph, a) || s == step_of(c.graph, b)) continue;
    const Step& step = c.graph.steps()[s];
    if (holds(step, a)) {
      rebuild.add(without_b(step));
    } else {
      rebuild.copy(s);
    }
  }
  rebuild.add(without_b(c.step));
  return rebuild.graph();
}

}  // namespace

const Rule kJoinedPair{
    .id = "R6c",
    .name = "joined-pair",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      Two Reduces that only the same weights share are rejected. One Reduce of the product is kept.
Why:       In each weight that holds both indices, the pair of indices is one relabeled index of the product.
When:      One contraction joins both Reduces, and every weight holds either both or none of them.
Soundness: exact (E1 and E3)
Status:    unreleased, new after 0.1
Example:   contract(o drop, r keep, q keep); contract(r join, q join, i keep) with |r|=s, |q|=k is rejected; one
           Reduce of s*k is kept.)",
    .steps = {Primitive::kContraction},
    .matches = matches,
    .rewrite = rewrite,
    .version = "0900629d",
};

}  // namespace syno
