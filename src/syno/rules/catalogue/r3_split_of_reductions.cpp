#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kSplit &&
         is_unshared(c.graph, c.step.in[0], Primitive::kReduce) &&
         is_unshared(c.graph, c.step.in[1], Primitive::kReduce);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const std::size_t first = step_of(c.graph, c.step.in[0]);
  const std::size_t second = step_of(c.graph, c.step.in[1]);
  Rebuild rebuild(c);
  rebuild.add(Step::reduce(c.graph.extent(c.step.in[0]) * c.graph.extent(c.step.in[1])));
  rebuild.copy_all_but({first, second});
  return rebuild.graph();
}

}  // namespace

const Rule kSplitOfReductions{
    .id = "R3b",
    .name = "split-of-reductions",
    .kind = RuleKind::kExact,
    .doc = R"(What:      a Split of two Reduces that no weight holds is one Reduce of the product
Why:       |r2|*r1 + r2 runs over every value below |r1|*|r2| once
When:      no weight holds either Reduce
Soundness: exact
Status:    stable since 0.1
Example:   split(r:[C_in/s], q:[s]) is refused, reduce C_in is kept)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
