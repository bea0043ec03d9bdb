#include <algorithm>

#include "syno/rules/catalogue.h"
#include "syno/rules/forms.h"
#include "syno/rules/free_region.h"
#include "syno/rules/near.h"
#include "syno/spec/size_values.h"

namespace syno {
namespace {

constexpr Forms kForms{.rejected =
                           "unfold h r -> t\n"
                           "unfold t q",
                       .kept =
                           "unfold h q -> u\n"
                           "unfold u r"};

// The Unfold below an Unfold with a smaller window, if no weight holds what is between; null otherwise.
const Step* larger_below(const RuleContext& c) {
  const Step* below = form_below<kForms>(c);
  if (below == nullptr) return nullptr;
  SizeTable& table = SizeTable::of(c.spec);
  const double large = table.at(c.spec, c.graph.extent(below->in[1])).sum;
  return table.at(c.spec, c.graph.extent(c.step.in[1])).sum < large ? below : nullptr;
}

// Positions from which some place of the larger window is outside; the smaller one leaves at no other.
double share(const RuleContext& c, const Values& values) {
  const Step& below = *larger_below(c);
  const std::int64_t large = std::max(value_of(c.graph.extent(below.in[1]), values),
                                      value_of(c.graph.extent(c.step.in[1]), values));
  return hit_share(c.graph, below.in[0], large - 1, value_of(c.graph.extent(below.in[0]), values),
                   values);
}

bool matches(const RuleContext& c) {
  return larger_below(c) != nullptr && is_near(c, share);
}

std::optional<Graph> rewrite(const RuleContext& c) {
  return larger_below(c) == nullptr ? std::nullopt : form_rewrite<kForms>(c);
}

}  // namespace

const Rule kNestedUnfolds{
    .id = "R11",
    .name = "nested-unfolds",
    .kind = RuleKind::kApproximate,
    .doc =
        R"(What:      Two Unfolds of one coordinate are rejected if the Unfold with the larger window is below. The form with the
           smaller window below is kept.
Why:       i + j - J/2 + k - K/2 does not depend on the order. Only near the ends do the two forms read zeros at
           different positions.
When:      No weight holds the coordinate between the Unfolds, and the windows differ in size. At most half of the
           outputs of a layer may come from the ends, and at most 1 in 8 once primary sizes are large.
Soundness: approximate. Of the positions along a dimension, at most K - 1 differ, where K is the larger window. Lost
           is the order in which the two windows are cut off at the ends.
Status:    unreleased, new after 0.1
Example:   unfold(h, r:[5]) -> c; unfold(c, q:[3]) is rejected; unfold(h, q) -> d; unfold(d, r) is kept.)",
    .steps = {Primitive::kUnfold},
    .matches = matches,
    .rewrite = rewrite,
    .share = share,
    .version = "b42e165e",
};

}  // namespace syno
