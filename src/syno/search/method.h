// SearchMethod: selects operators of a fixed set by the results of those that were evaluated.
//
//     ask(number)  -> an operator            it is pending: a trial of it runs
//     answer(operator, value)                the trial has a result, greater is better; again: the value is replaced
//     fail(operator)                         it failed, which counts as a visit with the worst value
//
// A method is a function of its options, its seed, and the order of these calls. Random numbers depend on (seed, number)
// alone. So a study that is resumed gives a new object the stored calls again and receives the same proposals: `insert`
// is `ask` with the operator that was proposed. No operator is proposed twice. All calls may come from several threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace syno {

enum class TrialState : std::uint8_t { kNew, kPending, kDone, kFailed };

/// A value as an integer, so that sums do not depend on the order of their terms.
using FixedPoint = std::int64_t;
inline constexpr double kFixedUnit = 0x1.0p30;
/// Values beyond are cut off.
inline constexpr double kMostValue = 1e4;
FixedPoint to_fixed(double value);
inline double from_fixed(FixedPoint value) {
  return static_cast<double>(value) / kFixedUnit;
}

struct TrialResult {
  TrialState state = TrialState::kNew;
  /// Of kDone.
  FixedPoint value = 0;
  bool is_done() const { return state == TrialState::kDone; }
  /// Done or failed.
  bool has_ended() const { return is_done() || state == TrialState::kFailed; }
  friend bool operator==(const TrialResult&, const TrialResult&) = default;
};

class SearchMethod {
 public:
  SearchMethod(std::size_t operators, std::uint64_t seed);
  virtual ~SearchMethod() = default;
  SearchMethod(const SearchMethod&) = delete;
  SearchMethod& operator=(const SearchMethod&) = delete;

  std::size_t operator_count() const { return results_.size(); }
  /// The operators that are not proposed yet.
  std::size_t left() const;

  /// What `ask(number)` would return; nothing if every operator was proposed.
  std::optional<std::uint32_t> propose(std::uint64_t number) const;
  /// Makes an operator pending. Throws UserError for an unknown operator, and for one that was proposed.
  void insert(std::uint64_t number, std::uint32_t op);
  std::optional<std::uint32_t> ask(std::uint64_t number);
  /// Throws UserError for an operator that was not proposed, and for a value that is not finite.
  void answer(std::uint32_t op, double value);
  void fail(std::uint32_t op);

 protected:
  // The lock is held in all of these.

  /// At least one operator is new.
  virtual std::uint32_t select(std::uint64_t number) const = 0;
  /// Before `op` becomes pending.
  virtual void inserting(std::uint64_t /*number*/, std::uint32_t /*op*/) {}
  /// After the result of `op` changed.
  virtual void changed(std::uint32_t /*op*/, const TrialResult& /*before*/) {}

  std::unique_lock<std::mutex> locked() const { return std::unique_lock(mutex_); }
  const TrialResult& result(std::uint32_t op) const { return results_[op]; }
  bool is_new(std::uint32_t op) const { return results_[op].state == TrialState::kNew; }
  /// Proposed operators, in their order.
  const std::vector<std::uint32_t>& proposed() const { return proposed_; }
  /// An order for ties and samples, which is random and depends on (seed, number, purpose, item).
  std::uint64_t random_word(std::uint64_t number, std::uint64_t purpose, std::uint64_t item) const;
  double random_share(std::uint64_t number, std::uint64_t purpose) const;
  /// A new operator with equal probabilities, of all or of `among`; nothing if none of them is new.
  std::optional<std::uint32_t> sample(std::uint64_t number, std::uint64_t purpose) const;
  std::optional<std::uint32_t> sample(std::uint64_t number, std::uint64_t purpose,
                                      std::span<const std::uint32_t> among) const;

 private:
  template <class OperatorAt>
  std::optional<std::uint32_t> sampled(std::uint64_t number, std::uint64_t purpose,
                                       std::uint32_t count, const OperatorAt& operator_at) const;
  std::optional<std::uint32_t> selected(std::uint64_t number) const;
  void insert_locked(std::uint64_t number, std::uint32_t op);
  void set(std::uint32_t op, TrialResult result);
  void check_known(std::uint32_t op) const;

  mutable std::mutex mutex_;
  std::uint64_t seed_;
  std::vector<TrialResult> results_;
  std::vector<std::uint32_t> proposed_;
};

}  // namespace syno
