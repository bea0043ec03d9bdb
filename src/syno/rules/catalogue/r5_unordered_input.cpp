#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/free_region.h"
#include "syno/rules/rebuild.h"
#include "syno/rules/reorder.h"
#include "syno/spec/variable_fingerprints.h"
#include "syno/support/hash.h"

namespace syno {
namespace {

// How a coordinate is computed, blind to names and to which of several equal reductions it uses.
Hash128 blind(const Specification& spec, const Graph& graph, CoordinateId id) {
  Hasher hasher("blind");
  const Step* step = graph.producer(id);
  if (step == nullptr) return hasher.add(graph.coordinate(id).index).finish();
  hasher.add(static_cast<int>(step->primitive)).add(static_cast<int>(graph.coordinate(id).index));
  hasher.add(size_fingerprint(spec, step->size)).add(step->amount).add(step->causal);
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate) hasher.add(blind(spec, graph, in));
  }
  return hasher.finish();
}

// A set of weights: bit w is the weight number w of the graph.
using Weights = std::uint32_t;
constexpr std::size_t kMostHolders = 32;

Weights holders(const Graph& graph, CoordinateId id) {
  Weights found = 0;
  for (std::size_t w = 0; w < graph.weights().size(); ++w) {
    if (graph.weights()[w].holds(id)) found |= Weights{1} << w;
  }
  return found;
}

// Whether a contraction takes it out of the data.
bool leaves(const Graph& graph, CoordinateId id) {
  return std::any_of(graph.weights().begin(), graph.weights().end(), [&](const Weight& weight) {
    return takes_out(graph.steps()[static_cast<std::size_t>(weight.step)], id);
  });
}

// A set of steps, by their numbers in the graph.
using Steps = std::vector<bool>;

// A part of the index: what no Split made, or Splits of such.
struct Part {
  Size size;
  // The weights that hold it, or a Split's result that it is a part of.
  Weights held = 0;
  int chain = 0;
  bool reduction = false;
  // Blind to the numbers of weights; parts are ordered by size and this.
  Hash128 order;
  // How it is made, with the weights that hold each piece.
  Hash128 form;
};

Part atom(const Specification& spec, const Graph& graph, CoordinateId id, Weights held) {
  const Hash128 how = blind(spec, graph, id);
  return {graph.extent(id),
          held,
          graph.coordinate(id).chain,
          is_unshared(graph, id, Primitive::kReduce),
          how,
          Hasher("atom").add(how).finish()};
}

class PartOrder {
 public:
  explicit PartOrder(const Specification& spec) : spec_(spec) {}
  bool operator()(const Part& a, const Part& b) const {
    return a.size != b.size ? smaller_block(spec_, a.size, b.size) : a.order < b.order;
  }

 private:
  const Specification& spec_;
};

// The form of a part whose Split result or self exactly the weights `here` hold.
Hash128 with_holders(const Hash128& form, Weights here) {
  return Hasher("held").add(form).add(static_cast<std::uint64_t>(here)).finish();
}

Hash128 split_form(const Hash128& major, const Hash128& minor) {
  return Hasher("split").add(major).add(minor).finish();
}

// The form of the index as it stands, its Splits, and its parts.
Hash128 read_form(const Specification& spec, const Graph& graph, CoordinateId id, Weights above,
                  Steps& tree, std::vector<Part>& parts) {
  const Weights here = holders(graph, id);
  const Step* step = graph.producer(id);
  if (step == nullptr || step->primitive != Primitive::kSplit) {
    parts.push_back(atom(spec, graph, id, above | here));
    return with_holders(parts.back().form, here);
  }
  tree[step_of(graph, id)] = true;
  const Hash128 major = read_form(spec, graph, step->in[0], above | here, tree, parts);
  const Hash128 minor = read_form(spec, graph, step->in[1], above | here, tree, parts);
  return with_holders(split_form(major, minor), here);
}

bool legal(const Specification& spec, const Size& size) {
  return spec.legal(size) && spec.fit_suffices(spec.fit(size));
}

// Splits of the parts from the left, in the first order whose products are all allowed; their weights are those that
// hold all of them.
std::optional<Part> nested(const Specification& spec, std::vector<Part> parts, Weights common) {
  const PartOrder is_before(spec);
  std::sort(parts.begin(), parts.end(), is_before);
  do {
    Part whole = parts.front();
    whole.form = with_holders(whole.form, whole.held & ~common);
    bool fits = true;
    for (std::size_t i = 1; i < parts.size() && fits; ++i) {
      whole.size = whole.size * parts[i].size;
      whole.chain = std::max(whole.chain, parts[i].chain) + 1;
      whole.form = split_form(whole.form, with_holders(parts[i].form, parts[i].held & ~common));
      if (i + 1 < parts.size()) whole.form = with_holders(whole.form, 0);
      fits = legal(spec, whole.size) && whole.chain <= spec.limits().max_chain_length;
    }
    if (!fits) continue;
    Hasher order("nested");
    for (const Part& part : parts) order.add(part.order).add(std::popcount(part.held & ~common));
    whole.order = order.finish();
    whole.held = common;
    whole.reduction = false;
    return whole;
    // A few parts: Splits are capped.
  } while (std::next_permutation(parts.begin(), parts.end(), is_before));
  return std::nullopt;
}

// The steps that weight `w` needs to stand before it. `tree` are the Splits that make the index: in another form other
// weights come before them.
Steps needs(const Graph& graph, const Steps& tree, std::size_t w) {
  Steps needed(graph.steps().size(), false);
  needed[static_cast<std::size_t>(graph.weights()[w].step)] = true;
  add_needed_steps(graph, needed,
                   [&](std::size_t step, CoordinateId /*operand*/) { return !tree[step]; });
  return needed;
}

constexpr std::size_t kMostWeights = 4;

// Whether each contraction still takes something out of the data when the weights are contracted in this order.
bool all_remove(const Graph& graph, const std::vector<std::size_t>& order) {
  Weights done = 0;
  for (const std::size_t w : order) {
    const Weights now = done | Weights{1} << w;
    const auto leaves_now = [&](CoordinateId id) {
      return (holders(graph, id) & ~now) == 0 && leaves(graph, id);
    };
    const auto& dims = graph.weights()[w].dims;
    if (std::none_of(dims.begin(), dims.end(), leaves_now)) return false;
    done = now;
  }
  return true;
}

// Whether all of `before` can be contracted before any of `after`.
bool may_precede(const Graph& graph, const Steps& tree, Weights before, Weights after) {
  if (before == 0) return true;
  const std::size_t count = graph.weights().size();
  if (count > kMostWeights) return false;
  std::vector<Weights> needed(count, 0);
  std::vector<std::size_t> order(count);
  for (std::size_t w = 0; w < count; ++w) {
    const Steps steps = needs(graph, tree, w);
    for (std::size_t v = 0; v < count; ++v) {
      if (v != w && steps[static_cast<std::size_t>(graph.weights()[v].step)])
        needed[w] |= Weights{1} << v;
    }
    if ((after >> w & 1) != 0) needed[w] |= before;
    order[w] = w;
  }
  do {
    Weights done = 0;
    bool possible = true;
    for (const std::size_t w : order) {
      possible = possible && (needed[w] & ~done) == 0;
      done |= Weights{1} << w;
    }
    if (possible && all_remove(graph, order)) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

// The sets of weights that hold two of the parts together, without those that cannot be contracted after the other
// weights of these parts: then there is no moment between the two for a Split. The largest sets come last.
std::vector<Weights> shared_holders(const Graph& graph, const Steps& tree,
                                    const std::vector<Part>& parts) {
  std::vector<Weights> found;
  for (std::size_t a = 0; a < parts.size(); ++a) {
    for (std::size_t b = a + 1; b < parts.size(); ++b) {
      const Weights common = parts[a].held & parts[b].held;
      if (common == 0 || std::find(found.begin(), found.end(), common) != found.end()) continue;
      Weights before = 0;
      for (const Part& part : parts) {
        if ((part.held & common) == common) before |= part.held & ~common;
      }
      if (may_precede(graph, tree, before, common)) found.push_back(common);
    }
  }
  std::sort(found.begin(), found.end(),
            [](Weights a, Weights b) { return std::popcount(a) < std::popcount(b); });
  return found;
}

std::vector<Part> parts_of(const PartOrder& is_before, const std::vector<Part>& parts,
                           Weights common) {
  std::vector<Part> found;
  for (const Part& part : parts) {
    if ((part.held & common) == common) found.push_back(part);
  }
  std::sort(found.begin(), found.end(), is_before);
  return found;
}

// Whether it matters which of two parts that `common` hold comes first, and nothing says which does.
bool is_ambiguous(const PartOrder& is_before, const std::vector<Part>& together) {
  for (const Part& a : together) {
    for (const Part& b : together) {
      if (!is_before(a, b) && !is_before(b, a) && a.held != b.held) return true;
    }
  }
  return false;
}

// The plain form of an index with these parts: what the same weights hold is one Split's result, in order, as early as
// it can be. Nothing where there is no such form, or several.
std::optional<Part> plain(const Specification& spec, const Graph& graph, const Steps& tree,
                          std::vector<Part> parts) {
  const PartOrder is_before(spec);
  while (parts.size() > 1) {
    const std::vector<Weights> sets = shared_holders(graph, tree, parts);
    Weights common = sets.empty() ? 0 : sets.back();
    std::vector<Part> together = parts_of(is_before, parts, common);
    for (const Weights other : sets) {
      if (other == common || std::popcount(other) != std::popcount(common)) continue;
      // Two sets of weights may claim a part. The one whose parts come first has it.
      std::vector<Part> others = parts_of(is_before, parts, other);
      if (std::lexicographical_compare(others.begin(), others.end(), together.begin(),
                                       together.end(), is_before)) {
        common = other;
        together = std::move(others);
      } else if (!std::lexicographical_compare(together.begin(), together.end(), others.begin(),
                                               others.end(), is_before)) {
        return std::nullopt;
      }
    }
    if (is_ambiguous(is_before, together)) return std::nullopt;
    const std::optional<Part> whole = nested(spec, std::move(together), common);
    if (!whole) return std::nullopt;
    std::erase_if(parts, [&](const Part& part) { return (part.held & common) == common; });
    parts.push_back(*whole);
  }
  return parts.front();
}

// Whether two of the parts are Reduces that could be one.
bool has_pair_of_reductions(const Specification& spec, const Graph& graph, const Steps& tree,
                            const std::vector<Part>& parts) {
  for (std::size_t a = 0; a < parts.size(); ++a) {
    for (std::size_t b = a + 1; b < parts.size(); ++b) {
      if (!parts[a].reduction || !parts[b].reduction || parts[a].held != parts[b].held) continue;
      std::vector<Part> fewer = parts;
      fewer[a].size = fewer[a].size * fewer[b].size;
      if (!legal(spec, fewer[a].size)) continue;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(b));
      if (plain(spec, graph, tree, std::move(fewer))) return true;
    }
  }
  return false;
}

// Whether a Shift stands among the Splits.
bool is_rotated(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  if (step == nullptr) return false;
  if (step->primitive == Primitive::kShift) return true;
  if (step->primitive != Primitive::kSplit) return false;
  return is_rotated(graph, step->in[0]) || is_rotated(graph, step->in[1]);
}

constexpr std::size_t kMostParts = 6;

// Whether the index of an unordered input dimension is not in its plain form: it is cyclically shifted somewhere, its parts stand in
// another order than they could, or two of them are Reduces that could be one.
bool is_permuted(const Specification& spec, const Graph& graph, CoordinateId id) {
  if (is_rotated(graph, id)) return true;
  const Step* step = graph.producer(id);
  if (step == nullptr || step->primitive != Primitive::kSplit ||
      graph.weights().size() > kMostHolders)
    return false;
  std::vector<Part> parts;
  Steps tree(graph.steps().size(), false);
  const Hash128 form = read_form(spec, graph, id, 0, tree, parts);
  if (parts.size() > kMostParts) return false;
  if (has_pair_of_reductions(spec, graph, tree, parts)) return true;
  const std::optional<Part> kept = plain(spec, graph, tree, std::move(parts));
  return kept && with_holders(kept->form, kept->held) != form;
}

bool rejects_match(const Specification& spec, const Graph& graph, const Shape& input,
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
        R"(What:      A coordinate that is matched to an unordered input dimension has a normal form. It contains no Shift
           outside of Unfolds and Merges, the parts of its Splits have one fixed order, and no two parts are Reduces
           that can be one Reduce. Other forms are rejected.
Why:       Shifts and other orders of the Splits permute the index of the dimension. Weights that hold their results
           are relabeled. Two Reduces that can be adjacent parts are one Reduce (R3b).
When:      A coordinate is matched to an unordered input dimension, and the specification allows the products of the
           other order.
Soundness: exact (E1, E3 and E4). The normal form takes no more steps.
Status:    unreleased, new after 0.1
Example:   split(r, q) -> c; shift(c, 1) -> d; d matched to [C_in: unordered] is rejected; split(r, q) is kept.)",
    .steps = {},
    .matches = never,
    .rewrite = nullptr,
    .rejects_match = rejects_match,
    .version = "a51d1854",
};

}  // namespace syno
