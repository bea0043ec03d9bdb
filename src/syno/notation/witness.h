// A second look at what was recognised: the operator against the text's own arithmetic at random terms.
#pragma once

#include <utility>
#include <vector>

#include "syno/notation/resolve.h"

namespace syno::notation {

/// Random small values of all variables under which every size of the graph is legal, as far as 80 tries find them;
/// variables in denominators are at least `smallest`.
std::vector<Values> small_bindings(const Graph& graph, std::int64_t smallest, std::size_t wanted);

/// Where the parts of the text stand in the operator.
struct Places {
  /// The operator's coordinate of each leaf.
  std::vector<CoordinateId> leaves;
  /// weights[t] is the weight of the text that weight t of the operator is.
  std::vector<std::size_t> weights;
  /// What has to be inside for a term to count, beside what x and the weights are read at.
  std::vector<std::pair<Index, Size>> conditions;
};

/// Throws InternalError where the operator reads another element than the text, or counts another term.
void check_against_text(const Meaning& meaning, const ParsedFormula& parsed, const Places& places,
                        const std::vector<Values>& bindings);

}  // namespace syno::notation
