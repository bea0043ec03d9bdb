#include "syno/search/method.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "syno/support/error.h"
#include "syno/support/mix.h"

namespace syno {

FixedPoint to_fixed(double value) {
  return std::llround(std::clamp(value, -kMostValue, kMostValue) * kFixedUnit);
}

SearchMethod::SearchMethod(std::size_t operators, std::uint64_t seed)
    : seed_(seed), results_(operators) {}

std::size_t SearchMethod::left() const {
  const std::scoped_lock lock(mutex_);
  return results_.size() - proposed_.size();
}

std::optional<std::uint32_t> SearchMethod::selected(std::uint64_t number) const {
  if (proposed_.size() == results_.size()) return std::nullopt;
  const std::uint32_t op = select(number);
  ensure(is_new(op), "SearchMethod: an operator is proposed twice");
  return op;
}

std::optional<std::uint32_t> SearchMethod::propose(std::uint64_t number) const {
  const std::scoped_lock lock(mutex_);
  return selected(number);
}

void SearchMethod::insert(std::uint64_t number, std::uint32_t op) {
  const std::scoped_lock lock(mutex_);
  insert_locked(number, op);
}

std::optional<std::uint32_t> SearchMethod::ask(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  const auto op = selected(number);
  if (op) insert_locked(number, *op);
  return op;
}

void SearchMethod::insert_locked(std::uint64_t number, std::uint32_t op) {
  check_known(op);
  if (!is_new(op))
    throw UserError("operator " + std::to_string(op) + " of the search was proposed before");
  inserting(number, op);
  proposed_.push_back(op);
  set(op, {TrialState::kPending, 0});
}

void SearchMethod::answer(std::uint32_t op, double value) {
  if (!std::isfinite(value)) {
    throw Complaint("the value of operator " + std::to_string(op) + " is not finite")
        .hint("report the trial as failed")
        .error();
  }
  const std::scoped_lock lock(mutex_);
  set(op, {TrialState::kDone, to_fixed(value)});
}

void SearchMethod::fail(std::uint32_t op) {
  const std::scoped_lock lock(mutex_);
  set(op, {TrialState::kFailed, 0});
}

void SearchMethod::check_known(std::uint32_t op) const {
  if (op < results_.size()) return;
  throw Complaint("the search has no operator " + std::to_string(op))
      .expected("a number below " + std::to_string(results_.size()), std::to_string(op))
      .error();
}

void SearchMethod::set(std::uint32_t op, TrialResult result) {
  check_known(op);
  if (result.state != TrialState::kPending && is_new(op)) {
    throw Complaint("operator " + std::to_string(op) + " has a result but was not proposed")
        .hint("report the results of proposals only")
        .error();
  }
  if (results_[op] == result) return;
  const TrialResult before = results_[op];
  results_[op] = result;
  changed(op, before);
}

std::uint64_t SearchMethod::random_word(std::uint64_t number, std::uint64_t purpose,
                                        std::uint64_t item) const {
  const std::uint64_t stream = mix_bits(mix_bits(seed_ + kGoldenRatio) ^ (number * kGoldenRatio));
  return mix_bits(mix_bits(stream ^ mix_bits(purpose + 1)) + item * kGoldenRatio);
}

double SearchMethod::random_share(std::uint64_t number, std::uint64_t purpose) const {
  return static_cast<double>(random_word(number, purpose, 0) >> 11) * 0x1.0p-53;
}

template <class OperatorAt>
std::optional<std::uint32_t> SearchMethod::sampled(std::uint64_t number, std::uint64_t purpose,
                                                   std::uint32_t count,
                                                   const OperatorAt& operator_at) const {
  std::optional<std::uint32_t> best;
  std::uint64_t least = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t op = operator_at(i);
    if (!is_new(op)) continue;
    const std::uint64_t word = random_word(number, purpose, op);
    if (!best || word < least) {
      best = op;
      least = word;
    }
  }
  return best;
}

std::optional<std::uint32_t> SearchMethod::sample(std::uint64_t number,
                                                  std::uint64_t purpose) const {
  const auto all = static_cast<std::uint32_t>(results_.size());
  return sampled(number, purpose, all, [](std::uint32_t i) { return i; });
}

std::optional<std::uint32_t> SearchMethod::sample(std::uint64_t number, std::uint64_t purpose,
                                                  std::span<const std::uint32_t> among) const {
  const auto count = static_cast<std::uint32_t>(among.size());
  return sampled(number, purpose, count, [among](std::uint32_t i) { return among[i]; });
}

}  // namespace syno
