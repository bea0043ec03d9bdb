#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kContract) return false;
  for (const SharedDim& dim : c.step.dims) {
    if (dim.role == ShareRole::kKeep || c.graph.is_iterator(dim.coordinate)) continue;
    const Primitive maker = c.graph.producer(dim.coordinate)->primitive;
    if (maker == Primitive::kMerge &&
        (dim.role == ShareRole::kJoin || !c.graph.reductions_only(dim.coordinate)))
      continue;
    if (maker == Primitive::kReduce && dim.role == ShareRole::kJoin) continue;
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
        R"(What:      a coordinate that leaves the data in a contraction is an output iterator, a result of a Merge, or a
           Reduce (or piece of one) that an earlier weight holds
Why:       a sum over an index of one weight alone only adds up the weight; other derived outer indices tie weight elements together in ways that were not found useful
When:      always
Soundness: restriction: excludes, for example, a weight indexed by a window position alone
Status:    stable since 0.1
Example:   split(o, r) -> u; contract(u drop, ..) is left out)",
    .steps = {Primitive::kContract},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kPlainDrops},
};

}  // namespace syno
