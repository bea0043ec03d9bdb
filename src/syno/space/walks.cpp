#include "syno/space/walks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "syno/key/key.h"
#include "syno/space/accept.h"
#include "syno/space/live_steps.h"
#include "syno/support/interrupt.h"
#include "syno/support/random.h"
#include "syno/support/threads.h"

namespace syno {
namespace {

// Populations of one round learn nothing from each other, so threads may share them. Rounds grow, as what they learn does.
constexpr std::int64_t kLargestRound = 8;
// The share of the choices that ignores what was learned: no live step is left out for ever, and no weight explodes.
constexpr double kUniformShare = 0.1;
// A mean counts like so many samples of its own beside the mean of the coarser kind.
constexpr double kShrinkage = 2;
// Graphs of so few steps are met again and again: each has a mean of its own, and its live steps are kept.
constexpr int kNear = 5;
constexpr std::size_t kMostFrames = 5000;

// How many structures lie below steps of a kind: means over the walks that took one. Kinds are nested: the primitive at a
// depth, then what it does, then (near the root) the graph that it leads to.
class Estimates {
 public:
  struct Kind {
    std::uint64_t coarse = 0;
    std::uint64_t fine = 0;
    std::uint64_t graph = 0;
  };

  static Kind kind(LiveSteps& steps, const Position& from, const LiveMove& live) {
    const Move& move = live.move;
    Hasher hasher("step");
    hasher.add(static_cast<int>(from.state.depth)).add(static_cast<int>(move.primitive));
    Kind kind;
    kind.coarse = hasher.finish().high;
    hasher.add(static_cast<int>(from.state.size));
    if (move.is_contraction()) {
      int kept = 0;
      int gone = 0;
      for (std::uint64_t roles = move.roles; roles != 0; roles >>= 2) {
        kept += (roles & 3U) == kKeepRole;
        gone += (roles & 3U) > kKeepRole;
      }
      hasher.add(kept).add(gone);
    } else {
      if (!move.is_reduction()) hasher.add(steps.size_fingerprint(from.state.slots[move.a].size));
      if (move.size != kNoSize) hasher.add(steps.size_fingerprint(move.size));
    }
    kind.fine = hasher.finish().high;
    if (from.state.depth < kNear) kind.graph = live.fingerprint.high | 1;
    return kind;
  }

  double below(const Kind& kind) const {
    double mean = shrunk(kind.coarse, all_.mean(1));
    mean = shrunk(kind.fine, mean);
    return kind.graph == 0 ? mean : shrunk(kind.graph, mean);
  }
  void learn(const Kind& kind, double count) {
    all_.add(count);
    means_[kind.coarse].add(count);
    means_[kind.fine].add(count);
    if (kind.graph != 0) means_[kind.graph].add(count);
  }

 private:
  struct Mean {
    double sum = 0;
    double number = 0;
    void add(double value) {
      sum += value;
      ++number;
    }
    double mean(double prior) const { return (sum + kShrinkage * prior) / (number + kShrinkage); }
  };
  double shrunk(std::uint64_t key, double prior) const {
    const auto place = means_.find(key);
    return place == means_.end() ? prior : place->second.mean(prior);
  }
  Mean all_;
  std::unordered_map<std::uint64_t, Mean> means_;
};

// A graph that particles stand on: its live steps and its operators.
struct Frame {
  struct Accepted {
    Hash128 key;
    Operator op;
  };
  /// The fingerprints of the graphs on the way here.
  Hash128 path;
  Position position;
  std::vector<LiveMove> moves;
  std::vector<Estimates::Kind> kinds;
  std::vector<Accepted> accepted;
};

// A graph that a population kept.
struct Kept {
  std::shared_ptr<const Frame> frame;
  // An estimate without bias of 1: over all populations, a graph counts once.
  double weight = 0;
  // Where it was reached from: graphs of the level before.
  struct Link {
    std::size_t parent = 0;
    Estimates::Kind kind;
  };
  std::vector<Link> links;
  // What a link counts of what lies below, and that over the chance of being kept.
  double share = 0;
  double scale = 0;
};

using Population = std::vector<std::vector<Kept>>;

// For each score the chance with which it is kept, so that the chances add up to `width`: proportional to the scores, but
// at most 1, and never far below an equal chance.
std::vector<double> chances(std::vector<double> scores, std::size_t width) {
  if (scores.size() <= width) return std::vector<double>(scores.size(), 1.0);
  const double total = std::accumulate(scores.begin(), scores.end(), 0.0);
  const double equal = 1.0 / static_cast<double>(scores.size());
  for (double& score : scores)
    score = total > 0 ? (1 - kUniformShare) * score / total + kUniformShare * equal : equal;
  std::vector<double> result(scores.size(), 0);
  // Those that would have more than 1 get 1, and the others share what is left.
  std::size_t certain = 0;
  double rest = 1;
  for (bool more = true; more;) {
    more = false;
    const double factor = static_cast<double>(width - certain) / rest;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (result[i] == 1 || scores[i] * factor < 1) continue;
      result[i] = 1;
      rest -= scores[i];
      ++certain;
      more = certain < width;
      if (!more) break;
    }
  }
  const double factor = certain < width ? static_cast<double>(width - certain) / rest : 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (result[i] != 1) result[i] = std::min(1.0, scores[i] * factor);
  }
  return result;
}

// What one thread owns.
class Particle {
 public:
  Particle(const Specification& spec, const WalkOptions& options, int limit)
      : spec_(spec),
        options_(options),
        limit_(limit),
        steps_(spec, options.rules, options.bound),
        parents_(steps_, limit),
        checker_(spec),
        keyer_(spec.variables(), spec.bindings()) {}

  Population walk(std::int64_t number, const Estimates& estimates) {
    CounterRandom random(options_.seed, static_cast<std::uint64_t>(number));
    Population population;
    population.emplace_back();
    population.back().push_back({root(), 1.0, {}, 0, 0});
    while (true) {
      std::vector<Kept> next = below(population.back(), estimates, random);
      if (next.empty()) return population;
      population.push_back(std::move(next));
    }
  }

 private:
  struct Way {
    std::size_t parent;
    std::size_t move;
  };

  // The graphs one step below a level, those that are kept of them.
  std::vector<Kept> below(const std::vector<Kept>& level, const Estimates& estimates,
                          CounterRandom& random) {
    // In the order of their fingerprints, which does not depend on the thread.
    std::map<Hash128, std::vector<Way>> graphs;
    for (std::size_t parent = 0; parent < level.size(); ++parent) {
      const std::vector<LiveMove>& moves = level[parent].frame->moves;
      for (std::size_t move = 0; move < moves.size(); ++move)
        graphs[moves[move].fingerprint].push_back({parent, move});
    }
    std::vector<double> scores;
    for (const auto& [fingerprint, ways] : graphs) {
      double score = 0;
      for (const Way& way : ways)
        score +=
            level[way.parent].weight * estimates.below(level[way.parent].frame->kinds[way.move]);
      scores.push_back(score);
    }
    const std::vector<double> chance =
        chances(std::move(scores), static_cast<std::size_t>(options_.width));
    // Systematic sampling: one random number for the level, every graph with its own chance.
    std::vector<Kept> kept;
    double place = random.uniform();
    std::size_t index = 0;
    for (const auto& [fingerprint, ways] : graphs) {
      const double here = chance[index++];
      if (here < 1) {
        place -= here;
        if (place >= 0) continue;
        place += 1;
      }
      kept.push_back(keep(level, fingerprint, ways, here));
    }
    return kept;
  }

  Kept keep(const std::vector<Kept>& level, const Hash128& fingerprint,
            const std::vector<Way>& ways, double chance) {
    const Frame& from = *level[ways.front().parent].frame;
    Kept kept;
    kept.frame = frame(from, from.moves[ways.front().move].move, fingerprint);
    const int parents = parents_.count(kept.frame->position.graph, fingerprint);
    // (A graph has no fewer parents than were met; a fingerprint that tells too much apart must not make it count twice.)
    kept.share = 1.0 / std::max(parents, static_cast<int>(ways.size()));
    kept.scale = kept.share / chance;
    for (const Way& way : ways) {
      kept.weight += level[way.parent].weight * kept.scale;
      kept.links.push_back({way.parent, level[way.parent].frame->kinds[way.move]});
    }
    return kept;
  }

  std::shared_ptr<const Frame> root() {
    if (!root_) root_ = frame(steps_.root(), Hash128{});
    return root_;
  }

  // Kept by path: a graph looks the same in every thread then, whatever that met before.
  std::shared_ptr<const Frame> frame(const Frame& from, const Move& move,
                                     const Hash128& fingerprint) {
    const Hash128 path = Hasher("path").add(from.path).add(fingerprint).finish();
    const auto place = frames_.find(path);
    if (place != frames_.end()) return place->second;
    Position next = from.position;
    steps_.take(next, steps_.step(next, move));
    std::shared_ptr<const Frame> made = frame(std::move(next), path);
    if (made->position.state.depth <= kNear && frames_.size() < kMostFrames)
      frames_.emplace(path, made);
    return made;
  }

  std::shared_ptr<const Frame> frame(Position position, const Hash128& path) {
    check_interrupt();
    auto made = std::make_shared<Frame>();
    made->path = path;
    made->moves = steps_.from(position, limit_);
    for (const LiveMove& live : made->moves)
      made->kinds.push_back(Estimates::kind(steps_, position, live));
    if (steps_.may_end(position)) {
      for (const auto& match : matchings(position.graph, spec_.input(), spec_.passed_through())) {
        if (options_.rules.rejecting_rule(spec_, position.graph, spec_.input(), match) != nullptr)
          continue;
        if (!checker_.rejection_reason(position.graph, match, position.state.fit).empty()) continue;
        made->accepted.push_back({keyer_.key(position.graph, spec_.input(), match),
                                  Operator(position.graph, spec_.input(), match)});
      }
    }
    made->position = std::move(position);
    return made;
  }

  const Specification& spec_;
  const WalkOptions& options_;
  int limit_;
  LiveSteps steps_;
  Parents parents_;
  OperatorChecker checker_;
  Keyer keyer_;
  std::shared_ptr<const Frame> root_;
  std::unordered_map<Hash128, std::shared_ptr<const Frame>> frames_;
};

class Shepherd {
 public:
  Shepherd(const Specification& spec, const WalkOptions& options)
      : options_(options),
        limit_(static_cast<int>(options.max_depth > 0
                                    ? std::min(options.max_depth, spec.limits().max_depth)
                                    : spec.limits().max_depth)) {
    options_.width = std::max<std::int64_t>(1, options_.width);
    // A round has no more populations than that, and each is walked by one thread.
    const auto populations = static_cast<std::size_t>(kLargestRound);
    particles_.resize(std::min(thread_count(options.threads), populations));
    for (auto& particle : particles_) particle = std::make_unique<Particle>(spec, options_, limit_);
  }

  Walks run(const WalkProgress& progress) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    std::int64_t size = 1;
    while (walks_.walks < options_.walks) {
      const std::int64_t missing =
          (options_.walks - walks_.walks + options_.width - 1) / options_.width;
      const bool enough = round(std::min(size, missing));
      size = std::min(2 * size, kLargestRound);
      if (enough || (progress && !progress(walks_))) break;
      const std::chrono::duration<double> since = Clock::now() - start;
      if (options_.max_seconds > 0 && since.count() >= options_.max_seconds) break;
    }
    for (WalkedOperator& found : walks_.operators) found.weight /= total_weight_;
    return std::move(walks_);
  }

 private:
  struct Mean {
    double mean;
    double weight;
  };

  // Walks, then learns from it in the order of the populations. Whether there are enough operators.
  bool round(std::int64_t count) {
    std::vector<Population> populations(static_cast<std::size_t>(count));
    wander(populations);
    ++rounds_;
    double sum = 0;
    for (Population& population : populations) {
      sum += learn(population);
      ++walks_.populations;
      walks_.walks += options_.width;
    }
    estimate(sum / static_cast<double>(count), static_cast<double>(count));
    return options_.max_operators > 0 &&
           static_cast<std::int64_t>(walks_.operators.size()) >= options_.max_operators;
  }

  void wander(std::vector<Population>& populations) {
    share_out(
        particles_.size(), populations.size(), 1, [&](std::size_t t, std::size_t i, std::size_t) {
          populations[i] =
              particles_[t]->walk(walks_.populations + static_cast<std::int64_t>(i), estimates_);
        });
  }

  // Returns what the population makes of the number of structures.
  double learn(const Population& population) {
    // From the end: structures at or below each graph.
    std::vector<double> above;
    std::vector<double> here;
    for (std::size_t level = population.size(); level-- > 0;) {
      here = std::move(above);
      here.resize(population[level].size(), 0);
      above.assign(level > 0 ? population[level - 1].size() : 0, 0);
      for (std::size_t i = 0; i < population[level].size(); ++i) {
        const Kept& kept = population[level][i];
        here[i] += static_cast<double>(kept.frame->accepted.size());
        for (const Kept::Link& link : kept.links) {
          estimates_.learn(link.kind, kept.share * here[i]);
          above[link.parent] += kept.scale * here[i];
        }
      }
    }
    for (const std::vector<Kept>& level : population) {
      for (const Kept& kept : level) {
        for (const Frame::Accepted& one : kept.frame->accepted) note(kept, one);
      }
    }
    return here.front();
  }

  void note(const Kept& kept, const Frame::Accepted& one) {
    const auto [place, is_new] = places_.try_emplace(one.key, walks_.operators.size());
    if (is_new) {
      walks_.operators.push_back(
          {one.op, one.key, static_cast<int>(kept.frame->position.state.depth)});
      last_met_.push_back(-1);
    }
    WalkedOperator& found = walks_.operators[place->second];
    found.weight += static_cast<double>(rounds_) * kept.weight;
    // Two forms of one operator in one population count once.
    if (last_met_[place->second] == walks_.populations) return;
    last_met_[place->second] = walks_.populations;
    ++walks_.accepted;
    ++found.met;
    walks_.singletons += (found.met == 1) - (found.met == 2);
    walks_.doubletons += (found.met == 2) - (found.met == 3);
  }

  // Later rounds know more and count more: the weight of a round is its populations times its number, whatever it found.
  void estimate(double mean, double count) {
    means_.push_back({mean, count * static_cast<double>(rounds_)});
    double weight = 0;
    double sum = 0;
    for (const Mean& one : means_) {
      weight += one.weight;
      sum += one.weight * one.mean;
    }
    total_weight_ = weight;
    walks_.structures = sum / weight;
    double squares = 0;
    for (const Mean& one : means_) {
      const double part = one.weight / weight * (one.mean - walks_.structures);
      squares += part * part;
    }
    const auto rounds = static_cast<double>(means_.size());
    walks_.structures_error = rounds > 1 ? std::sqrt(squares * rounds / (rounds - 1)) : 0;
  }

  WalkOptions options_;
  int limit_;
  std::vector<std::unique_ptr<Particle>> particles_;
  Estimates estimates_;
  Walks walks_;
  std::unordered_map<Hash128, std::size_t> places_;
  std::vector<std::int64_t> last_met_;
  std::vector<Mean> means_;
  std::int64_t rounds_ = 0;
  double total_weight_ = 1;
};

using O = WalkOptions;

constexpr std::array kOptions = std::to_array<Option<WalkOptions>>({
    {"count", &O::walks, 1, "total number of walks; the last population is completed"},
    {"width", &O::width, 1, "number of walks in a population"},
    {"max_operators", &O::max_operators, 0,
     "number of distinct operators that ends the walks; 0: no limit"},
    {"seconds", &O::max_seconds, 0,
     "limit in seconds; if it ends the walks, the result depends on the machine; 0: no limit"},
});

}  // namespace

std::span<const Option<WalkOptions>> walk_options() {
  return kOptions;
}

double Walks::coverage() const {
  if (accepted == 0 || populations < 2) return 0;
  return 1.0 - static_cast<double>(singletons) / static_cast<double>(accepted);
}

double Walks::at_least() const {
  const auto found = static_cast<double>(operators.size());
  if (populations < 2) return found;
  const auto one = static_cast<double>(singletons);
  const auto units = static_cast<double>(populations);
  return found + (units - 1) / units * one * std::max(0.0, one - 1) /
                     (2.0 * (static_cast<double>(doubletons) + 1));
}

Walks random_walks(const Specification& spec, const WalkOptions& options,
                   const WalkProgress& progress) {
  return Shepherd(spec, options).run(progress);
}

}  // namespace syno
