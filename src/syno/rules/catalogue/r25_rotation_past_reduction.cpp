#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kShift ||
      !is_unshared(c.graph, c.step.in[0], Primitive::kSplit))
    return false;
  const auto [major, minor] = c.graph.producer(c.step.in[0])->in;
  return is_unshared(c.graph, major, Primitive::kReduce) && c.graph.share_count(minor) == 0 &&
         !c.graph.reductions_only(minor);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& split = *c.graph.producer(c.step.in[0]);
  Rebuild rebuild(c);
  rebuild.copy_all_but({step_of(c.graph, c.step.in[0])});
  const Step rotated = rebuild.add(Step::shift(rebuild.now(split.in[1]), c.step.amount));
  rebuild.add(Step::split(rebuild.now(split.in[0]), rotated.out[0]));
  return rebuild.graph();
}

}  // namespace

const Rule kRotationPastReduction{
    .id = "R25",
    .name = "rotation-past-reduction",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Shift of a Split with a Reduce as its major part is a Shift of the minor part
Why:       |i|*r + i + d is |i|*r' + sh(i), where r' is r, or the next one where i + d passes the end of i: for each i the
           sum over r' is the sum over r
When:      no weight holds the Split's result, the Reduce, or the minor part
Soundness: exact (E4)
Status:    stable since 0.2
Example:   split(r:[s], h) -> c; shift(c, 1) is refused; shift(h, 1) -> u; split(r, u) is kept)",
    .steps = {Primitive::kShift},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
