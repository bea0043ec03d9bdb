#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kContraction) return false;
  for (const WeightDim& dim : c.step.dims) {
    if (dim.role == WeightRole::kKeep || c.graph.is_iterator(dim.coordinate)) continue;
    const Primitive maker = c.graph.producer(dim.coordinate)->primitive;
    if (maker == Primitive::kMerge &&
        (dim.role == WeightRole::kJoin || !c.graph.reductions_only(dim.coordinate)))
      continue;
    if (maker == Primitive::kReduce && dim.role == WeightRole::kJoin) continue;
    return true;
  }
  return false;
}

}  // namespace

const Rule kDroppedKinds{
    .id = "R8",
    .name = "dropped-kinds",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      A coordinate leaves the data in a contraction only if it is an output iterator, a result of a Merge, or a
           Reduce (or a piece of one) that an earlier weight holds. Contractions that drop other coordinates are left
           out.
Why:       A sum over an index of one weight alone only sums this weight. Other derived outer indices connect elements
           of weights in ways that proved not useful.
When:      Always.
Soundness: restriction. It excludes, for example, a weight whose only index is the position in a window.
Status:    stable since 0.1
Example:   split(o, r) -> u; contract(u drop, ..) is left out.)",
    .steps = {Primitive::kContraction},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kPlainDrops},
    .version = "d4d38df9",
};

}  // namespace syno
