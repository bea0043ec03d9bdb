#include "syno/explain/rule_check.h"

#include <algorithm>
#include <limits>
#include <set>

#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"
#include "syno/interp/interpreter.h"
#include "syno/key/key.h"
#include "syno/space/state.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

// Of all moves of a graph, as many are asked about.
constexpr std::size_t kAsked = 64;
// Orders of what a graph reads that are tried, as many orders have the same sizes.
constexpr int kOrders = 24;
// Elements of a tensor, and terms of all computed elements together: larger pairs stay undecided.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
constexpr std::int64_t kMostTerms = std::int64_t{1} << 23;

std::int64_t extent(const Graph& graph, CoordinateId id, const Values& values) {
  return graph.extent(id).extent(values).value_or(kMostElements + 1);
}

std::int64_t product(const std::vector<std::int64_t>& extents) {
  std::int64_t result = 1;
  for (const std::int64_t each : extents) {
    if (each > kMostElements || result > kMostElements) return kMostElements + 1;
    result *= each;
  }
  return result;
}

std::int64_t elements_read(const Graph& graph, const Values& values) {
  std::vector<std::int64_t> extents;
  for (const CoordinateId id : graph.frontier()) extents.push_back(extent(graph, id, values));
  return product(extents);
}

std::int64_t terms_of_element(const Graph& graph, const Values& values) {
  std::vector<std::int64_t> extents;
  for (const Step& step : graph.steps()) {
    if (step.is_reduction()) extents.push_back(extent(graph, step.out[0], values));
  }
  return product(extents);
}

// The graph as an operator of what it reads, in the given order.
Operator completed(const Graph& graph, const std::vector<CoordinateId>& order) {
  Shape input;
  for (const CoordinateId id : order) input.push_back({graph.extent(id), false, false});
  return Operator(graph, input, order);
}

// Orders of the frontier of `kept` with the sizes of that of `rejected`; the first keeps the places of the coordinates.
std::vector<std::vector<CoordinateId>> orders(const Graph& rejected, const Graph& kept) {
  std::vector<std::vector<CoordinateId>> found;
  std::vector<CoordinateId> order(kept.frontier().begin(), kept.frontier().end());
  if (order.size() != rejected.frontier().size()) return found;
  do {
    bool fits = true;
    for (std::size_t d = 0; d < order.size() && fits; ++d)
      fits = kept.extent(order[d]) == rejected.extent(rejected.frontier()[d]);
    if (fits) found.push_back(order);
  } while (static_cast<int>(found.size()) < kOrders &&
           std::next_permutation(order.begin(), order.end()));
  return found;
}

Tensor<std::int64_t> random_tensor(const std::vector<std::int64_t>& shape, CounterRandom& random) {
  Tensor<std::int64_t> tensor = zeros<std::int64_t>(shape);
  for (std::int64_t& value : tensor.data) value = static_cast<std::int64_t>(random.below(9)) + 1;
  return tensor;
}

Tensor<std::int64_t> ones(const std::vector<std::int64_t>& shape) {
  Tensor<std::int64_t> tensor = zeros<std::int64_t>(shape);
  std::fill(tensor.data.begin(), tensor.data.end(), 1);
  return tensor;
}

double share_that_differs(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::size_t differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ += a[i] != b[i];
  return a.empty() ? 0 : static_cast<double>(differ) / static_cast<double>(a.size());
}

enum class Outcome : std::uint8_t { kEqualKeys, kEqualValues, kDifferent, kUndecided };

struct Compared {
  Outcome outcome = Outcome::kUndecided;
  /// Nothing where no values were computed.
  std::optional<double> share;
};

class Checker {
 public:
  Checker(const Specification& spec, const RuleSet& rules, std::string_view rule,
          const RuleCheckOptions& options, const RuleCheckProgress& progress)
      : spec_(spec),
        rule_(rules.find(rule)),
        options_(options),
        progress_(progress),
        space_(spec),
        root_(spec.variables(), spec.output()) {
    for (const Rule* other : rules.rules()) {
      if (other->kind == RuleKind::kRestriction) restrictions_.push_back(other);
    }
  }

  RuleCheck run() {
    while (result_.compared < options_.trials && result_.graphs < options_.max_graphs) {
      grow(static_cast<std::uint64_t>(result_.graphs++));
      if (result_.graphs % 8 == 0 && progress_ && !progress_(result_)) break;
    }
    if (computed_ > 0) result_.mean_share /= static_cast<double>(computed_);
    return result_;
  }

 private:
  bool restricted(const Graph& graph, const Step& step) const {
    return std::any_of(restrictions_.begin(), restrictions_.end(), [&](const Rule* other) {
      return other != &rule_ && other->steps.holds(step.primitive) &&
             other->matches({spec_, graph, step});
    });
  }

  // Grows one random graph; on the way the rule is asked about some of the steps that may follow.
  void grow(std::uint64_t number) {
    CounterRandom random(options_.seed, number);
    State state = space_.root();
    Graph graph = root_;
    std::vector<Move> moves;
    while (state.depth < spec_.limits().max_depth && result_.compared < options_.trials) {
      space_.moves(state, false, moves);
      std::erase_if(moves, [&](const Move& move) {
        State child = state;
        return !space_.advance(child, move).empty();
      });
      if (moves.empty()) return;
      for (std::size_t i = 0; i + 1 < moves.size(); ++i)
        std::swap(moves[i], moves[i + random.below(moves.size() - i)]);
      // One move of each primitive in turn, so that the many contractions leave room for views.
      std::vector<std::size_t> by_primitive[kPrimitiveCount];
      for (std::size_t i = 0; i < moves.size(); ++i)
        by_primitive[static_cast<std::size_t>(moves[i].primitive)].push_back(i);
      std::size_t asked = 0;
      for (std::size_t round = 0; asked < std::min(kAsked, moves.size()); ++round) {
        for (const auto& list : by_primitive) {
          if (round >= list.size() || asked == kAsked) continue;
          ++asked;
          ask(graph, space_.step(state, moves[list[round]]));
        }
      }
      // A random primitive first, then one of its moves. Reductions come before everything else, so half of the graphs
      // start with one, a quarter with two.
      std::size_t primitive = random.below(kPrimitiveCount);
      if (state.only_reductions() && random.below(2) == 0)
        primitive = static_cast<std::size_t>(kReductionPrimitive);
      while (by_primitive[primitive].empty()) primitive = (primitive + 1) % kPrimitiveCount;
      const auto& list = by_primitive[primitive];
      const Move move = moves[list[random.below(list.size())]];
      const Step step = space_.step(state, move);
      if (restricted(graph, step)) return;
      space_.advance(state, move);
      graph.apply(step);
    }
  }

  void ask(const Graph& graph, const Step& step) {
    if (result_.compared >= options_.trials || !rule_.steps.holds(step.primitive) ||
        restricted(graph, step))
      return;
    ++result_.asked;
    const RuleContext context{spec_, graph, step};
    if (!rejects(rule_, context, restrictions_)) return;
    ++result_.rejected;
    Graph rejected = graph;
    rejected.apply(step);
    if (!seen_.insert(structure_hash(rejected)).second) return;
    ++result_.compared;
    if (rule_.kind == RuleKind::kRestriction) {
      if (!result_.example) result_.example = RuleExample{graph_text(rejected), "", 0};
      return;
    }
    const Graph kept = rule_.rewrite(context).value();
    const Compared compared = compare(rejected, kept);
    switch (compared.outcome) {
      case Outcome::kEqualKeys: ++result_.equal_keys; break;
      case Outcome::kEqualValues: ++result_.equal_values; break;
      case Outcome::kDifferent: ++result_.different; break;
      case Outcome::kUndecided: ++result_.undecided; break;
    }
    if (compared.share) {
      ++computed_;
      result_.mean_share += *compared.share;
    }
    const double share = compared.share.value_or(0);
    if (!result_.example || share > result_.most_share)
      result_.example = RuleExample{graph_text(rejected), graph_text(kept), share};
    result_.most_share = std::max(result_.most_share, share);
  }

  // The binding under which both graphs are computed with the least work; nothing when all are too large.
  const Values* binding(const Graph& rejected, const Graph& kept) const {
    FitMask fit = spec_.full_fit();
    for (const Graph* graph : {&rejected, &kept}) {
      for (const Coordinate& coordinate : graph->coordinates()) fit &= spec_.fit(coordinate.extent);
    }
    const Values* best = nullptr;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
      const Values& values = spec_.bindings()[b];
      if ((fit >> b & 1) == 0) continue;
      std::int64_t work = 0;
      bool possible = true;
      for (const Graph* graph : {&rejected, &kept}) {
        const std::int64_t read = elements_read(*graph, values);
        const std::int64_t terms = terms_of_element(*graph, values);
        possible = possible && read <= kMostElements && terms <= kMostTerms / options_.elements;
        for (const Weight& weight : graph->weights()) {
          std::vector<std::int64_t> extents;
          for (const CoordinateId id : weight.dims) extents.push_back(extent(*graph, id, values));
          possible = possible && product(extents) <= kMostElements;
        }
        work += read + std::min(terms, kMostTerms) * options_.elements;
      }
      if (possible && work < least) {
        least = work;
        best = &values;
      }
    }
    return best;
  }

  Compared compare(const Graph& rejected, const Graph& kept) {
    const std::vector<CoordinateId> own(rejected.frontier().begin(), rejected.frontier().end());
    const Operator wanted = completed(rejected, own).in_table(spec_.variables());
    const Hash128 key = semantic_key(wanted, spec_.bindings());
    std::vector<Operator> candidates;
    for (const auto& order : orders(rejected, kept)) {
      candidates.push_back(completed(kept, order).in_table(spec_.variables()));
      if (semantic_key(candidates.back(), spec_.bindings()) == key)
        return {Outcome::kEqualKeys, 0.0};
    }
    if (candidates.empty()) return {Outcome::kDifferent, 1.0};
    const Values* values = binding(rejected, kept);
    if (values == nullptr) return {};
    const double with_values = least_share(wanted, candidates, *values, false);
    if (with_values == 0) return {Outcome::kEqualValues, 0.0};
    // Weights whose elements are renumbered compute the same with all of them 1; unordered outputs may be renumbered too.
    const bool unordered = std::any_of(spec_.output().begin(), spec_.output().end(),
                                       [](const Dimension& dim) { return dim.unordered; });
    const double with_ones = least_share(wanted, candidates, *values, true);
    if (with_ones == 0 || (unordered && rule_.kind == RuleKind::kExact))
      return {Outcome::kUndecided, std::nullopt};
    return {Outcome::kDifferent, rule_.kind == RuleKind::kExact ? with_ones : with_values};
  }

  // For the order of what is read under which that is least. Weights are random, or 1 where their shapes differ.
  double least_share(const Operator& wanted, const std::vector<Operator>& candidates,
                     const Values& values, bool plain) {
    CounterRandom random(options_.seed,
                         0x76616C756573ULL + static_cast<std::uint64_t>(result_.compared));
    const OperatorShapes shapes = operator_shapes(wanted, values);
    const Tensor<std::int64_t> x = random_tensor(shapes.input, random);
    std::vector<Tensor<std::int64_t>> weights;
    for (const auto& shape : shapes.weights)
      weights.push_back(plain ? ones(shape) : random_tensor(shape, random));
    const std::int64_t outputs = element_count(shapes.output);
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < std::min(outputs, options_.elements); ++i) {
      positions.push_back(outputs <= options_.elements ? i
                                                       : static_cast<std::int64_t>(random.below(
                                                             static_cast<std::uint64_t>(outputs))));
    }
    const std::vector<std::int64_t> y = interpret_at(wanted, values, x, weights, positions);
    double least = 1;
    for (const Operator& candidate : candidates) {
      const OperatorShapes own = operator_shapes(candidate, values);
      std::vector<Tensor<std::int64_t>> given = weights;
      if (own.weights != shapes.weights) {
        if (!plain) continue;
        given.clear();
        for (const auto& shape : own.weights) given.push_back(ones(shape));
      }
      least = std::min(least,
                       share_that_differs(y, interpret_at(candidate, values, x, given, positions)));
      if (least == 0) break;
    }
    return least;
  }

  const Specification& spec_;
  const Rule& rule_;
  const RuleCheckOptions& options_;
  const RuleCheckProgress& progress_;
  StateSpace space_;
  Graph root_;
  std::vector<const Rule*> restrictions_;
  std::set<Hash128> seen_;
  std::int64_t computed_ = 0;
  RuleCheck result_;
};

}  // namespace

RuleCheck check_rule(const Specification& spec, const RuleSet& rules, std::string_view rule,
                     const RuleCheckOptions& options, const RuleCheckProgress& progress) {
  return Checker(spec, rules, rule, options, progress).run();
}

}  // namespace syno
