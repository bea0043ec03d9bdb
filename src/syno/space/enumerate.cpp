#include "syno/space/enumerate.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "syno/key/key.h"
#include "syno/space/accept.h"
#include "syno/space/expander.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/random.h"
#include "syno/support/threads.h"

namespace syno {
namespace {

using Clock = std::chrono::steady_clock;

// Parents that a thread takes at once.
constexpr std::uint32_t kChunk = 32;
constexpr std::size_t kShards = 64;

// A child that one of its parents may take. Of several parents the first one counts, so that nothing depends on who
// came first in time.
struct FoundChild {
  Hash128 fingerprint;
  std::uint32_t parent = 0;
  std::uint32_t ordinal = 0;
  SpaceMove move;

  std::uint64_t order() const { return static_cast<std::uint64_t>(parent) << 32 | ordinal; }
};

// The children found on one level so far, by fingerprint.
class Level {
 public:
  // Whether a parent before `order` has this child already.
  bool known(const Hash128& fingerprint, std::uint64_t order) {
    Shard& shard = shards_[fingerprint.high % kShards];
    const std::lock_guard lock(shard.mutex);
    const auto place = shard.children.find(fingerprint);
    return place != shard.children.end() && place->second.order() < order;
  }
  void insert(const FoundChild& found) {
    Shard& shard = shards_[found.fingerprint.high % kShards];
    const std::lock_guard lock(shard.mutex);
    const auto [place, is_new] = shard.children.try_emplace(found.fingerprint, found);
    if (is_new) {
      size_.fetch_add(1, std::memory_order_relaxed);
    } else if (found.order() < place->second.order()) {
      place->second = found;
    }
  }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  // The order of the parent that counts, for a child that has one.
  std::optional<std::uint64_t> order(const Hash128& fingerprint) const {
    const Shard& shard = shards_[fingerprint.high % kShards];
    const auto place = shard.children.find(fingerprint);
    if (place == shard.children.end()) return std::nullopt;
    return place->second.order();
  }
  std::vector<FoundChild> take() {
    std::vector<FoundChild> all;
    all.reserve(size());
    for (Shard& shard : shards_) {
      for (const auto& [fingerprint, found] : shard.children) all.push_back(found);
      shard.children.clear();
    }
    std::sort(all.begin(), all.end(),
              [](const FoundChild& a, const FoundChild& b) { return a.order() < b.order(); });
    return all;
  }

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Hash128, FoundChild> children;
  };
  std::array<Shard, kShards> shards_;
  std::atomic<std::size_t> size_{0};
};

// An operator that passes all conditions.
struct Accepted {
  std::uint32_t node = 0;
  std::uint32_t matching = 0;
  std::int32_t depth = 0;
  Hash128 key;
  std::int64_t macs = 0;
  Hash128 fingerprint;

  // Among equal operators the one with the fewest steps is kept, then the cheaper, then one that does not depend on names.
  auto rank() const { return std::tuple(depth, macs, fingerprint, node, matching); }
};

// What one thread owns: tables, caches and the way from the root to the graph it looks at.
class Worker {
 public:
  Worker(const Specification& spec, const EnumerateOptions& options)
      : spec_(spec),
        options_(options),
        expander_(spec, options.rules, options.bound, options.quality && options.macs_bound),
        checker_(spec),
        keyer_(spec.variables(), spec.bindings()) {
    path_.push_back({0, expander_.root()});
  }

  void visit(const Space& enumerated, std::uint32_t node, int limit, Level& level) {
    check_interrupt();
    const PathEntry& here = reach(enumerated, node);
    complete(here);
    for (const LiveMove& live : expander_.live_moves(here.position, limit)) {
      FoundChild found{live.fingerprint, node, live.ordinal, {}};
      if (level.known(found.fingerprint, found.order())) continue;
      if (const Rule* rule = expander_.rejection(here.position, live.move)) {
        rejected_.push_back({found.fingerprint, found.order(), rule});
        continue;
      }
      if (expander_.costs_too_much(here.position, live.move, limit)) continue;
      found.move = expander_.spelled(live.move);
      level.insert(found);
    }
    bytes_.store(expander_.bytes(), std::memory_order_relaxed);
  }

  // Counts what rules rejected on this level, as far as it would have been asked in order.
  void settle(const Level& level) {
    for (const Rejected& rejected : rejected_) {
      const auto order = level.order(rejected.fingerprint);
      if (!order || *order > rejected.order) ++rejections_[name_of(*rejected.rule)];
    }
    rejected_.clear();
  }

  std::vector<std::uint32_t>& graphs() { return graphs_; }
  std::vector<Accepted>& accepted() { return accepted_; }
  const Hash128& fingerprint_sum() const { return fingerprint_sum_; }
  /// As of the graph visited last; asked by another thread.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  Rejections take_rejections() {
    Rejections all = expander_.take_rejections();
    for (const auto& [reason, count] : rejections_) all[reason] += count;
    rejections_.clear();
    return all;
  }
  void forget() {
    take_rejections();
    graphs_.clear();
    accepted_.clear();
    rejected_.clear();
    fingerprint_sum_ = Hash128{};
    path_.erase(path_.begin() + 1, path_.end());
  }

 private:
  struct PathEntry {
    std::uint32_t node;
    Position position;
  };
  struct Rejected {
    Hash128 fingerprint;
    std::uint64_t order;
    const Rule* rule;
  };

  void count(std::string_view reason) {
    const auto place = rejections_.find(reason);
    if (place != rejections_.end()) {
      ++place->second;
    } else {
      rejections_.emplace(reason, 1);
    }
  }
  static std::string name_of(const Rule& rule) {
    return std::string(rule.id) + " " + std::string(rule.name);
  }

  // Neighbours in a level share most of their way from the root.
  const PathEntry& reach(const Space& enumerated, std::uint32_t node) {
    chain_.clear();
    for (std::uint32_t at = node; at != 0; at = enumerated.nodes[at].parent) chain_.push_back(at);
    std::reverse(chain_.begin(), chain_.end());
    std::size_t common = 0;
    while (common < chain_.size() && common + 1 < path_.size() &&
           path_[common + 1].node == chain_[common])
      ++common;
    path_.erase(path_.begin() + static_cast<std::ptrdiff_t>(common) + 1, path_.end());
    for (std::size_t i = common; i < chain_.size(); ++i) {
      PathEntry next = path_.back();
      next.node = chain_[i];
      expander_.take(next.position, enumerated.moves[enumerated.nodes[chain_[i]].move]);
      path_.push_back(std::move(next));
    }
    return path_.back();
  }

  void complete(const PathEntry& here) {
    const Position& position = here.position;
    if (options_.quality && position.graph.weights().empty()) return;
    if (!expander_.has_input_sizes(position.state)) return;
    const auto matches = matchings(position.graph, spec_.input(), spec_.passed_through());
    if (matches.empty()) return;
    graphs_.push_back(here.node);
    int good = 0;
    for (std::uint32_t m = 0; m < matches.size(); ++m) {
      if (const Rule* rule =
              options_.rules.rejecting_rule(spec_, position.graph, spec_.input(), matches[m])) {
        ++rejections_[name_of(*rule)];
        continue;
      }
      if (options_.quality) {
        const std::string_view why =
            checker_.rejection_reason(position.graph, matches[m], position.state.fit);
        if (!why.empty()) {
          count(why);
          continue;
        }
      }
      ++good;
      Accepted accepted;
      accepted.node = here.node;
      accepted.matching = m;
      accepted.depth = position.state.depth;
      if (options_.keys) {
        accepted.key = keyer_.key(position.graph, spec_.input(), matches[m]);
        accepted.macs =
            options_.quality
                ? checker_.macs()
                : total_macs(Operator(position.graph, spec_.input(), matches[m]), spec_);
      }
      accepted_.push_back(accepted);
    }
    if (good == 0) return;
    const Hash128 fingerprint = position.fingerprints.fingerprint(position.state);
    for (auto one = accepted_.end() - good; one != accepted_.end(); ++one)
      one->fingerprint = fingerprint;
    const Hash128 part = Hasher("graph").add(fingerprint).add(good).finish();
    fingerprint_sum_.high += part.high;
    fingerprint_sum_.low += part.low;
  }

  const Specification& spec_;
  const EnumerateOptions& options_;
  Expander expander_;
  OperatorChecker checker_;
  Keyer keyer_;
  std::vector<PathEntry> path_;
  std::vector<std::uint32_t> chain_;
  std::vector<std::uint32_t> graphs_;
  std::vector<Accepted> accepted_;
  std::vector<Rejected> rejected_;
  Rejections rejections_;
  Hash128 fingerprint_sum_;
  std::atomic<std::size_t> bytes_{0};
};

class Lister {
 public:
  Lister(const Specification& spec, const EnumerateOptions& options,
         const EnumerateProgress& progress)
      : spec_(spec),
        options_(options),
        progress_(progress),
        threads_(thread_count(options.threads)),
        started_(Clock::now()) {
    workers_.push_back(std::make_unique<Worker>(spec, options));
  }

  Space run() {
    const std::int64_t limit = options_.max_depth > 0
                                   ? std::min(options_.max_depth, spec_.limits().max_depth)
                                   : spec_.limits().max_depth;
    Space result(spec_);
    std::int64_t complete_depth = 0;
    bool exhausted = false;
    std::int64_t depth = std::clamp<std::int64_t>(options_.first_depth, 1, limit);
    for (; depth <= limit; ++depth) {
      Space space = list(static_cast<int>(depth));
      if (!stopped_) {
        complete_depth = depth;
        exhausted = depth == limit;
      }
      if (!stopped_ || result.operators.empty()) result = std::move(space);
      has_result_ = !result.operators.empty();
      if (stopped_) break;
    }
    result.rules = options_.rules.version();
    result.complete_depth = complete_depth;
    result.exhausted = exhausted;
    result.visited = visited_;
    return result;
  }

 private:
  Space list(int limit) {
    Space space(spec_);
    space.depth_limit = limit;
    space.nodes.push_back({});
    space.levels = {0, 1};
    for (auto& worker : workers_) worker->forget();
    std::map<SpaceMove, std::uint32_t> moves;
    for (int depth = 0; depth <= limit && !stopped_; ++depth) {
      const std::uint32_t begin = space.levels[static_cast<std::size_t>(depth)];
      const std::uint32_t end = space.levels[static_cast<std::size_t>(depth) + 1];
      if (begin == end) break;
      Level next;
      visit(space, begin, end, limit, next);
      for (auto& worker : workers_) worker->settle(next);
      const auto children = next.take();
      // No more than is needed: these are most of an enumeration's bytes.
      space.nodes.reserve(space.nodes.size() + children.size());
      for (const FoundChild& child : children) {
        const auto [place, is_new] =
            moves.try_emplace(child.move, static_cast<std::uint32_t>(space.moves.size()));
        if (is_new) space.moves.push_back(child.move);
        space.nodes.push_back({child.parent, place->second});
      }
      space.levels.push_back(static_cast<std::uint32_t>(space.nodes.size()));
    }
    collect(space);
    return space;
  }

  // Whether the budget of nodes ends before this level and the next are enumerated. Holds for good once it holds, so it does not
  // matter when it is asked.
  bool is_spent(std::uint32_t begin, std::uint32_t end, const Level& next) const {
    return visited_ + (end - begin) + static_cast<std::int64_t>(next.size()) > options_.max_nodes;
  }

  void visit(const Space& space, std::uint32_t begin, std::uint32_t whole, int limit, Level& next) {
    // With a result, a limit that cannot be completed is given up at once; without one, as many graphs are visited as the
    // budget allows. Both are the same for any number of threads.
    std::uint32_t end = whole;
    if (!has_result_) {
      const std::int64_t room = std::max<std::int64_t>(0, options_.max_nodes - visited_);
      end = begin + static_cast<std::uint32_t>(std::min<std::int64_t>(whole - begin, room));
    }
    // A level of a few graphs is not worth the threads, and no thread is without a chunk.
    const std::size_t chunks = (end - begin) / kChunk;
    const std::size_t threads = end - begin > 2 * kChunk ? std::min(threads_, chunks) : 1;
    while (workers_.size() < threads) workers_.push_back(std::make_unique<Worker>(spec_, options_));
    const bool all = share_out(
        threads, end - begin, kChunk,
        [&](std::size_t t, std::size_t from, std::size_t to) {
          for (std::size_t i = from; i < to; ++i)
            workers_[t]->visit(space, begin + static_cast<std::uint32_t>(i), limit, next);
        },
        [&](std::size_t, std::size_t to) {
          return !must_stop(space, begin, begin + static_cast<std::uint32_t>(to), whole, limit,
                            next);
        });
    stopped_ = stopped_ || !all || end < whole || (has_result_ && is_spent(begin, whole, next));
    visited_ += end - begin;
  }

  bool must_stop(const Space& space, std::uint32_t begin, std::uint32_t now, std::uint32_t end,
                 int limit, const Level& next) {
    const auto enumerated = static_cast<std::int64_t>(now - begin) + visited_;
    if (has_result_ && is_spent(begin, end, next)) return true;
    const auto since = std::chrono::duration<double>(Clock::now() - started_).count();
    if (options_.max_seconds > 0 && since > options_.max_seconds) return true;
    if (options_.max_memory > 0) {
      std::size_t bytes = space.nodes.size() * sizeof(SpaceNode) +
                          next.size() * (sizeof(FoundChild) + 4 * sizeof(void*));
      for (const auto& worker : workers_) bytes += worker->bytes();
      if (static_cast<std::int64_t>(bytes) > options_.max_memory) return true;
    }
    if (!progress_ || since - reported_ < 0.05) return false;
    reported_ = since;
    EnumerateStatus status;
    status.depth_limit = limit;
    status.level = static_cast<std::int64_t>(space.levels.size()) - 2;
    status.nodes = enumerated;
    status.operators = static_cast<std::int64_t>(workers_[0]->accepted().size()) *
                       static_cast<std::int64_t>(workers_.size());
    status.level_share = static_cast<double>(now - begin) / static_cast<double>(end - begin);
    return !progress_(status);
  }

  void collect(Space& space) {
    std::vector<Accepted> accepted;
    Hash128 sum{};
    for (auto& worker : workers_) {
      space.graphs.insert(space.graphs.end(), worker->graphs().begin(), worker->graphs().end());
      accepted.insert(accepted.end(), worker->accepted().begin(), worker->accepted().end());
      for (const auto& [reason, count] : worker->take_rejections())
        space.rejections[reason] += count;
      sum.high += worker->fingerprint_sum().high;
      sum.low += worker->fingerprint_sum().low;
    }
    std::sort(space.graphs.begin(), space.graphs.end());
    space.structures = static_cast<std::int64_t>(accepted.size());
    space.fingerprint_sum = sum;
    std::sort(accepted.begin(), accepted.end(), [](const Accepted& a, const Accepted& b) {
      return std::tuple(a.key, a.rank()) < std::tuple(b.key, b.rank());
    });
    if (options_.keys) {
      const auto first =
          std::unique(accepted.begin(), accepted.end(),
                      [](const Accepted& a, const Accepted& b) { return a.key == b.key; });
      const auto repeated = accepted.end() - first;
      if (repeated > 0) space.rejections["repeated_key"] = repeated;
      accepted.erase(first, accepted.end());
    }
    std::sort(accepted.begin(), accepted.end(), [](const Accepted& a, const Accepted& b) {
      return std::tuple(a.depth, a.key, a.node, a.matching) <
             std::tuple(b.depth, b.key, b.node, b.matching);
    });
    for (const Accepted& one : accepted)
      space.operators.push_back({one.node, one.matching, one.key});
  }

  const Specification& spec_;
  const EnumerateOptions& options_;
  const EnumerateProgress& progress_;
  std::size_t threads_;
  /// Made as levels need them.
  std::vector<std::unique_ptr<Worker>> workers_;
  Clock::time_point started_;
  double reported_ = 0;
  bool stopped_ = false;
  // Whether a complete limit has operators.
  bool has_result_ = false;
  std::int64_t visited_ = 0;
};

using O = EnumerateOptions;

constexpr std::array kOptions = std::to_array<Option<EnumerateOptions>>({
    {"depth", &O::max_depth, 0,
     "largest number of primitives in an operator; 0: max_depth of the specification"},
    {"max_nodes", &O::max_nodes, 1,
     "largest number of partial graphs to visit, over all depth limits"},
    {"max_memory", &O::max_memory, 0, "limit in bytes for partial graphs and tables; 0: no limit"},
    {"max_seconds", &O::max_seconds, 0,
     "limit in seconds; if it ends the enumeration, the result depends on the machine; 0: no "
     "limit"},
});

}  // namespace

std::span<const Option<EnumerateOptions>> enumerate_options() {
  return kOptions;
}

Space enumerate_space(const Specification& spec, const EnumerateOptions& options,
                      const EnumerateProgress& progress) {
  return Lister(spec, options, progress).run();
}

Enumeration enumerate(const Specification& spec, const EnumerateOptions& options,
                      const EnumerateProgress& progress) {
  const Space space = enumerate_space(spec, options, progress);
  Enumeration result;
  for (std::size_t i = 0; i < space.operators.size(); ++i) {
    result.operators.push_back(
        {space.op(spec, i), space.operators[i].key, space.depth(space.operators[i].node)});
  }
  result.graphs = static_cast<std::int64_t>(space.graphs.size());
  result.structures = space.structures;
  result.nodes = std::min(space.visited, options.max_nodes);
  result.complete_depth = space.complete_depth;
  result.exhausted = space.exhausted;
  result.rejections = space.rejections;
  return result;
}

UniformSamples::UniformSamples(std::uint64_t count, std::uint64_t seed) : order_(count) {
  std::iota(order_.begin(), order_.end(), std::uint64_t{0});
  // Fisher and Yates' shuffle, one counter-based stream a seed.
  CounterRandom random(seed, 0x73616D706C65ULL);
  for (std::uint64_t n = 0; n + 1 < count; ++n)
    std::swap(order_[n], order_[n + random.below(count - n)]);
}

}  // namespace syno
