// The error of an approximate rule: the fraction of the outputs that differ between what it rejects and what it keeps.
#pragma once

#include <cstdint>

#include "syno/graph/graph.h"
#include "syno/rules/forms.h"
#include "syno/rules/rule.h"

namespace syno {

/// The largest fraction of differing outputs at which an approximate rule applies: for large primary sizes, and in any
/// layer with its own sizes.
inline constexpr double kNearShare = 0.125;
inline constexpr double kNearShareInLayer = 0.5;

/// An upper bound on the fraction of the outputs of which some term has `id` mod `period` in a given run of `run`
/// neighboring values (the last and the first are neighbors). `period` divides the extent of `id`; 1 if nothing is
/// known, and if a Reduce takes all values for each output.
double hit_share(const Graph& graph, CoordinateId id, std::int64_t run, std::int64_t period,
                 const Values& values);

/// The value of a size, or 0 if it is not a positive integer.
std::int64_t value_of(const Size& size, const Values& values);

/// Whether at most kNearShareInLayer of the outputs differ under every binding, and at most kNearShare if its primary
/// sizes are much larger. `share` is Rule::share.
bool is_near(const RuleContext& context, double (*share)(const RuleContext&, const Values&));

/// Rule::matches of an approximate rule that is its forms.
template <const Forms& forms, double (*share)(const RuleContext&, const Values&)>
bool near_form_matches(const RuleContext& context) {
  return form_matches<forms>(context) && is_near(context, share);
}

}  // namespace syno
