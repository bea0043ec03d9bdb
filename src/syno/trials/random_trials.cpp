#include "syno/trials/random_trials.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>

#include "syno/key/key.h"
#include "syno/space/accept.h"
#include "syno/space/bound.h"
#include "syno/space/path.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/random.h"
#include "syno/support/threads.h"
#include "syno/trials/shape_distance.h"

namespace syno {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTrialStream = 0x747269616C000000ULL;
constexpr std::uint64_t kSampleStream = 0x73616D7000000000ULL;
// Trials that a thread takes at once.
constexpr std::int64_t kChunk = 64;
// Trials of a round of canonical_rates, at least.
constexpr std::int64_t kLeastRound = 1024;

std::int64_t depth_limit(const Specification& spec, const TrialOptions& options) {
  const std::int64_t most = spec.limits().max_depth;
  return options.max_depth > 0 ? std::min(options.max_depth, most) : most;
}

// Takes random steps. One object a thread.
class Particle {
 public:
  Particle(const Specification& spec, const RuleSet& rules, TrialGuide guide)
      : spec_(spec), rules_(rules), space_(spec), root_(spec.variables(), spec.output()) {
    if (guide == TrialGuide::kBound) bound_.emplace(space_, rules, BoundMode::kFull);
    if (guide == TrialGuide::kDistance) distance_.emplace(space_, DistanceForm::kEachGroup);
    if (guide == TrialGuide::kDistanceOnce) distance_.emplace(space_, DistanceForm::kOnce);
    for (const Dimension& dim : spec.input()) target_.push_back(space_.sizes().intern(dim.size));
    std::sort(target_.begin(), target_.end());
  }

  void start() {
    state_ = space_.root();
    graph_ = root_;
    ledger_ = start_ledger(spec_);
  }

  // Takes a random step that is allowed and leaves a way to the input within `limit`; false when there is none.
  bool step(CounterRandom& random, std::int64_t limit) {
    if (state_.depth >= limit) return false;
    space_.moves(state_, rules_.guarantees(Guarantee::kPlainDrops), moves_);
    for (auto& places : by_primitive_) places.clear();
    for (std::size_t i = 0; i < moves_.size(); ++i)
      by_primitive_[static_cast<std::size_t>(moves_[i].primitive)].push_back(i);
    std::array<std::size_t, kPrimitiveCount> kinds{};
    std::size_t kind_count = 0;
    for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
      if (!by_primitive_[p].empty()) kinds[kind_count++] = p;
    }
    while (kind_count > 0) {
      const std::size_t kind = random.below(kind_count);
      std::vector<std::size_t>& places = by_primitive_[kinds[kind]];
      const std::size_t place = random.below(places.size());
      const Move move = moves_[places[place]];
      places[place] = places.back();
      places.pop_back();
      if (places.empty()) kinds[kind] = kinds[--kind_count];
      ++looked_at_;
      if (take(move, limit)) return true;
    }
    return false;
  }

  // Whether the frontier is the input and a weight was made.
  bool is_complete() const {
    if (state_.weight_count() == 0 || state_.size != target_.size()) return false;
    std::array<SizeId, kMaxFrontier> sizes;
    for (std::size_t i = 0; i < state_.size; ++i) sizes[i] = state_.slots[i].size;
    std::sort(sizes.begin(), sizes.begin() + state_.size);
    return std::equal(target_.begin(), target_.end(), sizes.begin());
  }

  std::vector<std::vector<CoordinateId>> matches() const {
    return matchings(graph_, spec_.input(), spec_.passed_through());
  }
  const Graph& graph() const { return graph_; }
  FitMask fit() const { return ledger_.fit; }
  std::int64_t looked_at() const { return looked_at_; }

 private:
  bool take(const Move& move, std::int64_t limit) {
    State child = state_;
    if (!space_.advance(child, move).empty()) return false;
    const auto left = static_cast<int>(limit) - child.depth;
    const bool reduces = move.is_reduction();
    if (bound_) {
      if (!(reduces ? bound_->may_complete_with_more(child, left)
                    : bound_->may_complete(child, left)))
        return false;
    } else if (distance_ && !reduces && (*distance_)(child) > left) {
      // While reductions may follow there is no distance yet.
      return false;
    }
    const Step step = space_.step(state_, move);
    const RuleContext context{.spec = spec_, .graph = graph_, .step = step, .before = &ledger_};
    if (rules_.rejecting_rule(context) != nullptr) return false;
    if (!admit(spec_, graph_, step, ledger_).empty()) return false;
    graph_.apply(step);
    state_ = child;
    return true;
  }

  const Specification& spec_;
  const RuleSet& rules_;
  StateSpace space_;
  Graph root_;
  std::optional<CompletionBound> bound_;
  std::optional<ShapeDistance> distance_;
  std::vector<SizeId> target_;
  State state_;
  Graph graph_;
  Ledger ledger_;
  std::vector<Move> moves_;
  std::array<std::vector<std::size_t>, kPrimitiveCount> by_primitive_;
  std::int64_t looked_at_ = 0;
};

// Calls work(worker, number) for 0..count-1 on several threads, until `go_on` says no on the calling one.
template <class Worker, class Work>
void for_each(std::vector<std::unique_ptr<Worker>>& workers, std::int64_t count, const Work& work,
              const std::function<bool(std::size_t, std::size_t)>& go_on = {}) {
  share_out(
      workers.size(), static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), kChunk,
      [&](std::size_t thread, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i)
          work(*workers[thread], static_cast<std::int64_t>(i));
      },
      go_on);
}

// What each thread owns, made by `make`: no more of them than there are chunks of work.
template <class Worker, class Make>
std::vector<std::unique_ptr<Worker>> make_workers(const TrialOptions& options, const Make& make) {
  const std::size_t chunks = static_cast<std::size_t>(
      std::clamp<std::int64_t>(std::max(options.trials, kLeastRound) / kChunk, 1, kMaxThreads));
  std::vector<std::unique_ptr<Worker>> workers(std::min(thread_count(options.threads), chunks));
  for (std::unique_ptr<Worker>& worker : workers) worker = make();
  return workers;
}

struct TrialWorker {
  TrialWorker(const Specification& spec, const TrialOptions& options)
      : particle(spec, options.rules, options.guide), checker(spec) {}
  Particle particle;
  OperatorChecker checker;
  Trials counts;
  std::set<Hash128> keys;
};

struct Sample {
  /// Which trial met it, and as which of its graphs.
  std::int64_t trial = 0;
  int number = 0;
  Operator op;
};

struct SampleWorker {
  SampleWorker(const Specification& spec, const RuleSet& none, const TrialOptions& options)
      : particle(spec, none, options.guide),
        generator(spec, options.rules, BoundMode::kNone),
        checker(spec) {}
  Particle particle;
  ChildGenerator generator;
  OperatorChecker checker;
  std::vector<Sample> samples;
};

using O = TrialOptions;

constexpr std::array kOptions = std::to_array<Option<TrialOptions>>({
    {"trials", &O::trials, 1, "number of random trials"},
    {"depth", &O::max_depth, 0,
     "largest number of primitives in an operator; 0: max_depth of the specification"},
    {"max_seconds", &O::max_seconds, 0,
     "limit in seconds; if it ends the trials, the result depends on the machine; 0: no limit"},
});

}  // namespace

std::span<const Option<TrialOptions>> trial_options() {
  return kOptions;
}

TrialGuide parse_trial_guide(std::string_view name) {
  if (name == "none") return TrialGuide::kNone;
  if (name == "distance") return TrialGuide::kDistance;
  if (name == "distance-once") return TrialGuide::kDistanceOnce;
  if (name == "bound") return TrialGuide::kBound;
  throw Complaint("trials cannot be guided by '" + std::string(name) + "'")
      .expected("none, distance, distance-once or bound", std::string(name))
      .error();
}

Trials random_trials(const Specification& spec, const TrialOptions& options,
                     const TrialProgress& progress) {
  const auto started = Clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(Clock::now() - started).count();
  };
  const std::int64_t limit = depth_limit(spec, options);
  std::vector<std::unique_ptr<TrialWorker>> workers = make_workers<TrialWorker>(
      options, [&] { return std::make_unique<TrialWorker>(spec, options); });

  const auto trial = [&](TrialWorker& worker, std::int64_t number) {
    CounterRandom random(options.seed, kTrialStream + static_cast<std::uint64_t>(number));
    Particle& particle = worker.particle;
    ++worker.counts.trials;
    check_interrupt();
    particle.start();
    bool complete = false;
    bool valid = false;
    while (particle.step(random, limit)) {
      ++worker.counts.steps;
      if (!particle.is_complete()) continue;
      for (const auto& match : particle.matches()) {
        complete = true;
        if (options.rules.rejecting_rule(spec, particle.graph(), spec.input(), match) != nullptr)
          continue;
        const Operator op =
            Operator(particle.graph(), spec.input(), match).in_table(spec.variables());
        if (!worker.checker.rejection_reason(op).empty()) continue;
        valid = true;
        worker.keys.insert(semantic_key(op, spec.bindings()));
      }
    }
    worker.counts.complete += complete;
    worker.counts.valid += valid;
  };
  for_each(workers, options.trials, trial, [&](std::size_t done, std::size_t) {
    if (options.max_seconds > 0 && elapsed() >= options.max_seconds) return false;
    return !progress || progress(static_cast<std::int64_t>(done));
  });

  Trials result;
  std::set<Hash128> keys;
  for (const auto& worker : workers) {
    result.trials += worker->counts.trials;
    result.steps += worker->counts.steps;
    result.complete += worker->counts.complete;
    result.valid += worker->counts.valid;
    result.looked_at += worker->particle.looked_at();
    keys.insert(worker->keys.begin(), worker->keys.end());
  }
  result.distinct = static_cast<std::int64_t>(keys.size());
  result.seconds = elapsed();
  return result;
}

CanonicalRates canonical_rates(const Specification& spec, const TrialOptions& options,
                               const TrialProgress& progress) {
  const auto started = Clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(Clock::now() - started).count();
  };
  const std::int64_t most = std::max<std::int64_t>(2, depth_limit(spec, options));
  const RuleSet none = RuleSet::none();
  std::vector<std::unique_ptr<SampleWorker>> workers = make_workers<SampleWorker>(
      options, [&] { return std::make_unique<SampleWorker>(spec, none, options); });

  // Over all threads; for progress.
  std::atomic<std::int64_t> found{0};
  const auto trial = [&](SampleWorker& worker, std::int64_t number) {
    CounterRandom random(options.seed, kSampleStream + static_cast<std::uint64_t>(number));
    const std::int64_t limit =
        2 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - 1)));
    Particle& particle = worker.particle;
    check_interrupt();
    particle.start();
    int met = 0;
    while (particle.step(random, limit)) {
      // One step is below the sizes that are counted.
      if (!particle.is_complete() || particle.graph().depth() < 2) continue;
      const auto matches = particle.matches();
      if (matches.empty()) continue;
      const auto& match = matches[random.below(matches.size())];
      worker.samples.push_back({number, met++, Operator(particle.graph(), spec.input(), match)});
      found.fetch_add(1, std::memory_order_relaxed);
    }
  };
  // Rounds of trials, so that the samples do not depend on which thread was how far.
  std::vector<Sample> samples;
  CanonicalRates result;
  bool ended = false;
  while (static_cast<std::int64_t>(samples.size()) < options.trials && !ended) {
    const std::int64_t round = std::max(kLeastRound, options.trials / 8);
    for_each(
        workers, round,
        [&](SampleWorker& worker, std::int64_t number) { trial(worker, result.trials + number); },
        [&](std::size_t, std::size_t) {
          ended = (options.max_seconds > 0 && elapsed() >= options.max_seconds) ||
                  (progress && !progress(found.load()));
          return !ended;
        });
    result.trials += round;
    for (const auto& worker : workers) {
      for (Sample& sample : worker->samples) samples.push_back(std::move(sample));
      worker->samples.clear();
    }
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::pair(a.trial, a.number) < std::pair(b.trial, b.number);
  });
  if (static_cast<std::int64_t>(samples.size()) > options.trials)
    samples.resize(static_cast<std::size_t>(options.trials));

  struct Verdict {
    Hash128 key;
    bool canonical = false;
    bool listed = false;
  };
  std::vector<Verdict> verdicts(samples.size());
  for_each(
      workers, static_cast<std::int64_t>(samples.size()),
      [&](SampleWorker& worker, std::int64_t n) {
        check_interrupt();
        const Operator local = samples[static_cast<std::size_t>(n)].op.in_table(spec.variables());
        Verdict& verdict = verdicts[static_cast<std::size_t>(n)];
        verdict.key = semantic_key(local, spec.bindings());
        verdict.canonical = options.rules.rejecting_rule(spec, local.graph(), spec.input(),
                                                         local.match()) == nullptr &&
                            find_path(worker.generator, local, spec.limits().max_depth).reached;
        verdict.listed = verdict.canonical && worker.checker.rejection_reason(local).empty();
      });

  std::vector<std::pair<std::set<Hash128>, std::set<Hash128>>> seen(static_cast<std::size_t>(most) +
                                                                    1);
  result.rows.resize(static_cast<std::size_t>(most) + 1);
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const auto size = static_cast<std::size_t>(samples[n].op.graph().depth());
    CanonicalRow& row = result.rows[size];
    ++row.samples;
    row.canonical += verdicts[n].canonical;
    row.listed += verdicts[n].listed;
    row.structures += seen[size].first.insert(samples[n].op.structure()).second;
    row.operators += seen[size].second.insert(verdicts[n].key).second;
  }
  result.seconds = elapsed();
  return result;
}

}  // namespace syno
