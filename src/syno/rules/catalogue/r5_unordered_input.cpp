#include <algorithm>
#include <utility>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/free_region.h"
#include "syno/rules/rebuild.h"
#include "syno/spec/variable_marks.h"
#include "syno/support/hash.h"

namespace syno {
namespace {

// How a coordinate is computed, blind to names and to which of several equal reductions it uses.
Hash128 blind(const Specification& spec, const Graph& graph, CoordinateId id) {
  Hasher hasher("blind");
  const Step* step = graph.producer(id);
  if (step == nullptr) return hasher.add(graph.coordinate(id).index).finish();
  hasher.add(static_cast<int>(step->primitive)).add(static_cast<int>(graph.coordinate(id).index));
  hasher.add(size_mark(spec, step->size)).add(step->amount).add(step->causal);
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate) hasher.add(blind(spec, graph, in));
  }
  return hasher.finish();
}

using Leaves = std::vector<CoordinateId>;

// The parts of a chain of Splits, major first. What a weight holds is a part.
void collect(const Graph& graph, CoordinateId id, bool root, Leaves& leaves) {
  const Step* step = graph.producer(id);
  if (step == nullptr || step->primitive != Primitive::kSplit ||
      (!root && graph.share_count(id) > 0)) {
    leaves.push_back(id);
    return;
  }
  collect(graph, step->in[0], false, leaves);
  collect(graph, step->in[1], false, leaves);
}

// Whether the Splits nest to the left: each minor part is a leaf.
bool nests_left(const Graph& graph, CoordinateId id, bool root) {
  const Step* step = graph.producer(id);
  if (step == nullptr || step->primitive != Primitive::kSplit ||
      (!root && graph.share_count(id) > 0))
    return true;
  Leaves minor;
  collect(graph, step->in[1], false, minor);
  return minor.size() == 1 && nests_left(graph, step->in[0], false);
}

bool legal(const Specification& spec, const Size& size) {
  return spec.legal(size) && spec.fit_suffices(spec.fit(size));
}

// Whether Splits of these sizes, from the left, are all allowed.
bool may_nest(const Specification& spec, const std::vector<Size>& sizes) {
  Size product = sizes.front();
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    product = product * sizes[i];
    if (!legal(spec, product)) return false;
  }
  return true;
}

// A part, by its size and by how it is computed.
struct Part {
  Size size;
  Hash128 how;
};

class PartOrder {
 public:
  explicit PartOrder(const Specification& spec) : spec_(spec) {}
  bool operator()(const Part& a, const Part& b) const {
    return a.size != b.size ? smaller_block(spec_, a.size, b.size) : a.how < b.how;
  }

 private:
  const Specification& spec_;
};

std::vector<Part> parts_of(const Specification& spec, const Graph& graph, const Leaves& leaves) {
  std::vector<Part> result;
  for (const CoordinateId id : leaves) result.push_back({graph.extent(id), blind(spec, graph, id)});
  return result;
}

std::vector<Size> sizes_of(const std::vector<Part>& parts) {
  std::vector<Size> sizes;
  for (const Part& part : parts) sizes.push_back(part.size);
  return sizes;
}

// Whether an order before this one is allowed.
bool has_earlier_order(const Specification& spec, const std::vector<Part>& parts) {
  const PartOrder before(spec);
  std::vector<Part> order = parts;
  std::sort(order.begin(), order.end(), before);
  // A few parts: Splits are capped.
  while (std::lexicographical_compare(order.begin(), order.end(), parts.begin(), parts.end(),
                                      before)) {
    if (may_nest(spec, sizes_of(order))) return true;
    std::next_permutation(order.begin(), order.end(), before);
  }
  return false;
}

// Whether two of the parts are Reduces that could be one.
bool has_pair_of_reductions(const Specification& spec, const Graph& graph, const Leaves& leaves) {
  for (std::size_t a = 0; a < leaves.size(); ++a) {
    for (std::size_t b = a + 1; b < leaves.size(); ++b) {
      if (!is_unshared(graph, leaves[a], Primitive::kReduce) ||
          !is_unshared(graph, leaves[b], Primitive::kReduce))
        continue;
      const Size product = graph.extent(leaves[a]) * graph.extent(leaves[b]);
      if (!legal(spec, product)) continue;
      std::vector<Size> rest{product};
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (i != a && i != b) rest.push_back(graph.extent(leaves[i]));
      }
      std::sort(rest.begin(), rest.end());
      do {
        if (may_nest(spec, rest)) return true;
      } while (std::next_permutation(rest.begin(), rest.end()));
    }
  }
  return false;
}

constexpr std::size_t kMostParts = 6;

// Whether the index of an unordered input dimension is not in its plain form: it is rotated somewhere, its parts stand in
// another order than they could, or two of them are Reduces that could be one.
bool is_permuted(const Specification& spec, const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  if (step == nullptr) return false;
  if (step->primitive == Primitive::kShift) return true;
  if (step->primitive != Primitive::kSplit) return false;
  Leaves leaves;
  collect(graph, id, true, leaves);
  for (const CoordinateId leaf : leaves) {
    // A held Split is a tree of its own.
    if (is_permuted(spec, graph, leaf)) return true;
  }
  if (leaves.size() > kMostParts) return false;
  if (has_pair_of_reductions(spec, graph, leaves)) return true;
  return nests_left(graph, id, true) && has_earlier_order(spec, parts_of(spec, graph, leaves));
}

bool refuses_match(const Specification& spec, const Graph& graph, const Shape& input,
                   std::span<const CoordinateId> match) {
  for (std::size_t d = 0; d < input.size(); ++d) {
    if (input[d].unordered && is_permuted(spec, graph, match[d])) return true;
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
        R"(What:      the index of an unordered input dimension holds no Shift outside Unfolds and Merges, the parts of its Splits
           stand in one order, and no two of them are Reduces that could be one
Why:       Shifts and Splits in another order permute the index of the dimension; weights that hold what they make are
           relabelled; two Reduces that may stand side by side are one (R3b)
When:      a coordinate is matched to an unordered input dimension, and the products of the other order are allowed
Soundness: exact (E1, E3 and E4): the plain form takes no more steps
Status:    stable since 0.2
Example:   split(r, q) -> c; shift(c, 1) -> d; d matched to [C_in: unordered] is refused, split(r, q) is kept)",
    .steps = {},
    .matches = never,
    .rewrite = nullptr,
    .refuses_match = refuses_match,
};

}  // namespace syno
