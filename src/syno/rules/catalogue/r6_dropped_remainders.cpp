#include <optional>
#include <utility>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

/// The inner of two nested Merges, the outer one on its quotient, whose remainders the step takes out of the data while
/// the same weights hold them.
struct Pair {
  std::size_t inner;
  std::size_t outer;
};

std::optional<Pair> pair(const RuleContext& c) {
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& outer = c.graph.steps()[s];
    if (outer.primitive != Primitive::kMerge || !takes_out(c.step, outer.out[1]) ||
        !is_unshared(c.graph, outer.in[0], Primitive::kMerge))
      continue;
    const Step& inner = *c.graph.producer(outer.in[0]);
    if (inner.out[0] == outer.in[0] && takes_out(c.step, inner.out[1]) &&
        same_holders(c.graph, inner.out[1], outer.out[1]))
      return Pair{step_of(c.graph, inner.out[1]), s};
  }
  return std::nullopt;
}

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kContraction && pair(c);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const std::optional<Pair> found = pair(c);
  if (!found) return std::nullopt;
  const Step& inner = c.graph.steps()[found->inner];
  const Step& outer = c.graph.steps()[found->outer];
  Rebuild rebuild(c);
  const auto contract = [&](const Step& step) {
    WeightDims dims;
    for (const WeightDim& dim : step.dims) {
      if (dim.coordinate != outer.out[1]) dims.push_back({rebuild.now(dim.coordinate), dim.role});
    }
    rebuild.add(Step::contract(std::move(dims)));
  };
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    const Step& step = c.graph.steps()[s];
    if (s == found->inner) {
      const Step merged =
          rebuild.add(Step::merge(rebuild.now(inner.in[0]), inner.size * outer.size));
      rebuild.rename(outer.out[0], merged.out[0]);
      rebuild.rename(inner.out[1], merged.out[1]);
    } else if (step.primitive == Primitive::kContraction) {
      contract(step);
    } else if (s != found->outer) {
      rebuild.copy(s);
    }
  }
  contract(c.step);
  return rebuild.graph();
}

}  // namespace

const Rule kDroppedRemainders{
    .id = "R6d",
    .name = "dropped-remainders",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A contraction that takes two remainders of nested Merges out of the data is rejected. The form with the
           remainder of one Merge is kept.
Why:       i mod B and (i div B) mod D are the digits of i mod (B*D), and (i div B) div D is i div (B*D). Weights that
           hold both remainders are relabeled.
When:      The same weights hold both remainders, and one contraction takes both out of the data. No weight holds the
           inner quotient.
Soundness: exact (E3)
Status:    unreleased, new after 0.1
Example:   merge(h, k) -> q, m; merge(q, s) -> u, v; contract(m drop, v drop, ..) is rejected; merge(h, k*s) is kept.)",
    .steps = {Primitive::kContraction},
    .matches = matches,
    .rewrite = rewrite,
    .version = "14ff6c0c",
};

}  // namespace syno
