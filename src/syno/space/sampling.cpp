#include "syno/space/sampling.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "syno/space/accept.h"
#include "syno/space/enumerate.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/random.h"
#include "syno/support/threads.h"

namespace syno {
namespace {

// Streams of random numbers; each group has one of its own.
constexpr std::uint64_t kQuantileStream = 0x7175616E00000000ULL;
constexpr std::uint64_t kTurnStream = 0x7475726E00000000ULL;
constexpr std::uint64_t kMultisetStream = 0x6D756C7400000000ULL;

void shuffle(std::vector<std::size_t>& items, std::uint64_t seed, std::uint64_t stream) {
  CounterRandom random(seed, stream);
  for (std::size_t n = 0; n + 1 < items.size(); ++n)
    std::swap(items[n], items[n + random.below(items.size() - n)]);
}

// The cost of every operator, in the order of their indices.
std::vector<std::int64_t> costs(const Space& space, const Specification& spec, Stratify by,
                                std::int64_t threads) {
  std::vector<std::int64_t> values(space.operator_count());
  constexpr std::size_t kChunk = 64;
  // The checker of each thread remembers what parts of operators cost; it knows no cost of what it rejects.
  std::vector<std::unique_ptr<OperatorChecker>> checks(thread_count(threads));
  const auto work = [&](std::size_t thread, std::size_t from, std::size_t to) {
    if (!checks[thread]) checks[thread] = std::make_unique<OperatorChecker>(spec);
    OperatorChecker& checker = *checks[thread];
    for (std::size_t i = from; i < to; ++i) {
      check_interrupt();
      const Operator op = space.op(spec, i);
      const bool checked = checker.rejection_reason(op).empty();
      values[i] = by == Stratify::kMacs ? (checked ? checker.macs() : total_macs(op, spec))
                                        : (checked ? checker.params() : total_params(op, spec));
    }
  };
  share_out(checks.size(), values.size(), kChunk, work);
  return values;
}

std::vector<std::size_t> by_quantiles(const std::vector<std::int64_t>& values, std::uint64_t count,
                                      std::uint64_t seed) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<std::size_t> sampled;
  for (std::uint64_t group = 0; group < count; ++group) {
    const std::size_t begin = order.size() * group / count;
    const std::size_t end = order.size() * (group + 1) / count;
    sampled.push_back(
        order[begin + CounterRandom(seed, kQuantileStream + group).below(end - begin)]);
  }
  return sampled;
}

std::vector<std::size_t> by_primitives(const Space& space, std::uint64_t count,
                                       std::uint64_t seed) {
  std::map<std::array<std::uint8_t, kPrimitiveCount>, std::vector<std::size_t>> multisets;
  for (std::size_t i = 0; i < space.operator_count(); ++i) {
    std::array<std::uint8_t, kPrimitiveCount> used{};
    for (std::uint32_t at = space.operators[i].node; at != 0; at = space.nodes[at].parent)
      ++used[static_cast<std::size_t>(space.moves[space.nodes[at].move].primitive)];
    multisets[used].push_back(i);
  }
  std::vector<std::vector<std::size_t>> strata;
  for (auto& [used, members] : multisets) {
    shuffle(members, seed, kMultisetStream + strata.size());
    strata.push_back(std::move(members));
  }
  std::vector<std::size_t> turns(strata.size());
  for (std::size_t s = 0; s < turns.size(); ++s) turns[s] = s;
  shuffle(turns, seed, kTurnStream);
  std::vector<std::size_t> sampled;
  for (std::size_t round = 0; sampled.size() < count; ++round) {
    for (const std::size_t s : turns) {
      if (round < strata[s].size() && sampled.size() < count) sampled.push_back(strata[s][round]);
    }
  }
  return sampled;
}

}  // namespace

Stratify parse_stratify(std::string_view name) {
  if (name == "none") return Stratify::kNone;
  if (name == "macs") return Stratify::kMacs;
  if (name == "params") return Stratify::kParams;
  if (name == "primitives") return Stratify::kPrimitives;
  throw Complaint("operators cannot be sampled by '" + std::string(name) + "'")
      .expected("none, macs, params or primitives", std::string(name))
      .error();
}

std::vector<std::size_t> sample_operators(const Space& space, const Specification& spec,
                                          std::uint64_t count, std::uint64_t seed, Stratify by,
                                          std::int64_t threads) {
  const std::uint64_t all = space.operator_count();
  count = std::min(count, all);
  if (by == Stratify::kPrimitives) return by_primitives(space, count, seed);
  if (by != Stratify::kNone) return by_quantiles(costs(space, spec, by, threads), count, seed);
  const UniformSamples samples(all, seed);
  std::vector<std::size_t> sampled;
  for (std::uint64_t n = 0; n < count; ++n) sampled.push_back(samples.at(n));
  return sampled;
}

}  // namespace syno
