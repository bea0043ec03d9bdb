#include <algorithm>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"
#include "syno/support/hash.h"

namespace syno {
namespace {

// How a coordinate is computed, blind to which of several equal reductions it uses.
Hash128 blind(const Graph& graph, CoordinateId id) {
  Hasher hasher("blind");
  const Step* step = graph.producer(id);
  if (step == nullptr) return hasher.add(graph.coordinate(id).index).finish();
  hasher.add(static_cast<int>(step->primitive)).add(static_cast<int>(graph.coordinate(id).index));
  hasher.add(step->size.hash(*graph.variables())).add(step->amount).add(step->causal);
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate) hasher.add(blind(graph, in));
  }
  return hasher.finish();
}

bool is_split(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  return step != nullptr && step->primitive == Primitive::kSplit;
}

// Whether the index of an unordered input dimension is not in its plain form: it is rotated somewhere, or two parts that
// are no Splits themselves stand in the other order.
bool is_permuted(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  if (step == nullptr) return false;
  if (step->primitive == Primitive::kShift) return true;
  if (step->primitive != Primitive::kSplit) return false;
  const auto [i, j] = step->in;
  if (is_permuted(graph, i) || is_permuted(graph, j)) return true;
  if (is_split(graph, i) || is_split(graph, j)) return false;
  const auto order = [&](CoordinateId part) {
    return std::pair(graph.extent(part), blind(graph, part));
  };
  return order(j) < order(i);
}

bool refuses_match(const Graph& graph, const Shape& input, std::span<const CoordinateId> match) {
  for (std::size_t d = 0; d < input.size(); ++d) {
    if (input[d].unordered && is_permuted(graph, match[d])) return true;
  }
  return false;
}

bool never(const RuleContext& /*context*/) {
  return false;
}

}  // namespace

const Rule kPermutedInput{
    .id = "R5d",
    .name = "permuted-input",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      the index of an unordered input dimension holds no Shift outside Unfolds and Merges, and the parts of its
           Splits stand in one order
Why:       Shifts and Splits in another order permute the index of the dimension; weights that hold what they make are
           relabelled
When:      a coordinate is matched to an unordered input dimension; of Splits, those of two parts that are no Splits
Soundness: exact (E4 and E3): the plain form takes no more steps, and its products are the same
Status:    stable since 0.2
Example:   split(r, q) -> c; shift(c, 1) -> d; d matched to [C_in: unordered] is refused, split(r, q) is kept)",
    .steps = {},
    .matches = never,
    .rewrite = nullptr,
    .refuses_match = refuses_match,
};

}  // namespace syno
