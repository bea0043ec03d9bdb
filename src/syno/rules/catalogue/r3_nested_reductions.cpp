#include <utility>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool is_reduction(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  return step != nullptr && step->primitive == Primitive::kReduce;
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit || !is_reduction(c.graph, c.step.in[1]) ||
      !is_unshared(c.graph, c.step.in[0], Primitive::kSplit))
    return false;
  const CoordinateId inner = c.graph.producer(c.step.in[0])->in[1];
  return is_reduction(c.graph, inner) && same_holders(c.graph, inner, c.step.in[1]);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& split = *c.graph.producer(c.step.in[0]);
  const CoordinateId inner = split.in[1];
  const CoordinateId outer = c.step.in[1];
  Rebuild rebuild(c);
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& step = c.graph.steps()[s];
    if (step.out[0] == inner) {
      const Size both = c.graph.extent(inner) * c.graph.extent(outer);
      rebuild.rename(inner, rebuild.add(Step::reduce(both)).out[0]);
    } else if (step.primitive == Primitive::kContraction) {
      WeightDims dims;
      for (const WeightDim& dim : step.dims) {
        if (dim.coordinate != outer) dims.push_back({rebuild.now(dim.coordinate), dim.role});
      }
      rebuild.add(Step::contract(std::move(dims)));
    } else if (step.out[0] != outer && step.out[0] != split.out[0]) {
      rebuild.copy(s);
    }
  }
  rebuild.add(Step::split(rebuild.now(split.in[0]), rebuild.now(inner)));
  return rebuild.graph();
}

}  // namespace

const Rule kNestedReductions{
    .id = "R3d",
    .name = "nested-reductions",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      Two nested Splits whose minor parts are Reduces are rejected. One Split with one Reduce of the product is
           kept.
Why:       |r2|*(|r1|*i + r1) + r2 is |r|*i + r with r = |r2|*r1 + r2, and r takes every value below |r1|*|r2| once.
When:      Either the same weights hold both Reduces, or no weight holds any of them. No weight holds the result of
           the inner Split.
Soundness: exact (E1, E3)
Status:    unreleased, new after 0.1
Example:   split(h, r:[s]) -> c; split(c, q:[k]) is rejected; split(h, t:[s*k]) is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
    .version = "36a07367",
};

}  // namespace syno
