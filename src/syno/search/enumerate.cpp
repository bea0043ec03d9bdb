#include "syno/search/enumerate.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "syno/access/key.h"
#include "syno/graph/canonical.h"
#include "syno/search/accept.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr std::int64_t kProgressEvery = 256;

// What is known of a complete structure; it is judged once, however many depth limits meet it.
struct Judged {
  bool accepted = false;
  Hash128 key;
  std::string reason;
};

// One depth-first listing for one depth limit.
class Listing {
 public:
  Listing(ChildGenerator& generator, const EnumerateOptions& options,
          const EnumerateProgress& progress, std::unordered_map<Hash128, Judged>& judged)
      : generator_(generator), options_(options), progress_(progress), judged_(judged) {}

  /// False when the budget ended first.
  bool run(std::int64_t depth_limit, std::int64_t nodes_before) {
    depth_limit_ = depth_limit;
    nodes_ = nodes_before;
    return visit(generator_.root());
  }

  std::int64_t nodes() const { return nodes_; }
  std::int64_t graphs() const { return graphs_; }
  std::int64_t structures() const { return structures_; }
  std::vector<FoundOperator> take() {
    std::sort(found_.begin(), found_.end(), [](const FoundOperator& a, const FoundOperator& b) {
      return a.depth != b.depth ? a.depth < b.depth : a.key < b.key;
    });
    return std::move(found_);
  }

 private:
  bool visit(const PartialGraph& partial) {
    // A graph that several paths reach is the same with the same number of steps, so one visit is enough.
    if (!seen_.insert(structure_hash(partial.graph)).second) return true;
    if (++nodes_ > options_.max_nodes) return false;
    if (nodes_ % kProgressEvery == 0 && progress_ &&
        !progress_(depth_limit_, nodes_, static_cast<std::int64_t>(found_.size()))) {
      return false;
    }
    complete(partial);
    for (const Step& step : generator_.steps(partial, depth_limit_)) {
      if (!visit(generator_.child(partial, step))) return false;
    }
    return true;
  }

  void complete(const PartialGraph& partial) {
    const Specification& spec = generator_.specification();
    const auto matches = matchings(partial.graph, spec.input(), spec.passed_through());
    graphs_ += !matches.empty();
    for (const std::vector<CoordinateId>& match : matches) {
      const Operator op(partial.graph, spec.input(), match);
      const auto [place, is_new] = judged_.try_emplace(op.structure());
      if (is_new) place->second = judge(op.in_table(spec.variables()));
      if (!place->second.accepted) {
        generator_.count(place->second.reason);
        continue;
      }
      ++structures_;
      const auto [first, is_new_key] = by_key_.try_emplace(place->second.key, found_.size());
      if (is_new_key) {
        found_.push_back({op, place->second.key, op.graph().depth()});
        continue;
      }
      generator_.count("repeated_key");
      replace_if_better(found_[first->second], op);
    }
  }

  // Among equal operators the one with the fewest steps stays, then the cheaper, then the one with the smaller structure:
  // a choice that does not depend on which was met first.
  void replace_if_better(FoundOperator& kept, const Operator& op) const {
    const auto rank = [&](const Operator& candidate) {
      return std::tuple(candidate.graph().depth(),
                        total_macs(candidate, generator_.specification()), candidate.structure());
    };
    if (rank(op) < rank(kept.op)) kept = {op, kept.key, op.graph().depth()};
  }

  Judged judge(const Operator& op) const {
    Judged judged;
    if (options_.quality) {
      const auto against = quality_and_cost_refusals(op, generator_.specification());
      if (!against.empty()) {
        judged.reason = against.front().reason;
        return judged;
      }
    }
    judged.accepted = true;
    judged.key = semantic_key(op, generator_.specification().bindings());
    return judged;
  }

  ChildGenerator& generator_;
  const EnumerateOptions& options_;
  const EnumerateProgress& progress_;
  std::unordered_map<Hash128, Judged>& judged_;
  std::int64_t depth_limit_ = 0;
  std::int64_t nodes_ = 0;
  std::int64_t graphs_ = 0;
  std::int64_t structures_ = 0;
  std::unordered_set<Hash128> seen_;
  std::unordered_map<Hash128, std::size_t> by_key_;
  std::vector<FoundOperator> found_;
};

}  // namespace

Enumeration enumerate(const Specification& spec, const EnumerateOptions& options,
                      const EnumerateProgress& progress) {
  ChildGenerator generator(spec, options.rules, options.bound);
  const std::int64_t limit = options.max_depth > 0
                                 ? std::min(options.max_depth, spec.limits().max_depth)
                                 : spec.limits().max_depth;
  Enumeration result;
  std::unordered_map<Hash128, Judged> judged;
  for (std::int64_t depth = 1; depth <= limit; ++depth) {
    Listing listing(generator, options, progress, judged);
    const bool complete = listing.run(depth, result.nodes);
    result.nodes = std::min(listing.nodes(), options.max_nodes);
    if (complete || result.operators.empty()) {
      result.graphs = listing.graphs();
      result.structures = listing.structures();
      result.operators = listing.take();
    }
    if (!complete) break;
    result.complete_depth = depth;
    result.exhausted = depth == limit;
  }
  result.rejections = generator.rejections();
  return result;
}

UniformDraws::UniformDraws(std::uint64_t count, std::uint64_t seed) : order_(count) {
  std::iota(order_.begin(), order_.end(), std::uint64_t{0});
  // Fisher and Yates' shuffle, one counter-based stream a seed.
  CounterRandom random(seed, 0x73616D706C65ULL);
  for (std::uint64_t n = 0; n + 1 < count; ++n)
    std::swap(order_[n], order_[n + random.below(count - n)]);
}

}  // namespace syno
