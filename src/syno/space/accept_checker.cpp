#include <algorithm>
#include <array>
#include <optional>

#include "syno/plan/macs_counter.h"
#include "syno/quality/quality_memo.h"
#include "syno/space/accept.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

constexpr std::string_view kMinMacs = "min_macs";
constexpr std::string_view kMaxMacs = "max_macs";
constexpr std::string_view kMinParams = "min_params";
constexpr std::string_view kMaxParams = "max_params";

constexpr std::array<std::string_view, 15> kOrder{reason::kNoWeight,
                                                  reason::kWastedExpand,
                                                  reason::kWastedUnfold,
                                                  reason::kAbsorbedWeight,
                                                  reason::kWastedReduce,
                                                  reason::kFit,
                                                  reason::kPooling,
                                                  kMinParams,
                                                  kMaxParams,
                                                  kMinMacs,
                                                  kMaxMacs,
                                                  reason::kInputUnread,
                                                  reason::kOutputConstant,
                                                  reason::kEqualOutputs,
                                                  reason::kReadsFuture};

// Answers that are kept before all are forgotten: some thirty megabytes.
constexpr std::size_t kMaxAnswers = std::size_t{1} << 18;

}  // namespace

class OperatorChecker::State {
 public:
  explicit State(const Specification& spec)
      : spec_(spec), extents_(spec.bindings()), quality_(spec, extents_), counter_(extents_) {}

  const Specification& spec() const { return spec_; }

  std::string_view check(const Graph& graph, const std::vector<CoordinateId>& match, FitMask fit) {
    forget();
    if (!quality_.usable() || graph.output() != spec_.output() ||
        !map_.read(graph, match, extents_)) {
      return check_slowly(Operator(graph, spec_.input(), match), fit);
    }
    map_.fit &= spec_.full_fit();
    const std::string_view why = rejection_reason(graph, match, fit & map_.fit);
    if (why.empty()) {
      try {
        count_params(graph, match);
        count_macs(graph, match);
      } catch (const UserError&) {
        // No limit asks for them. Whoever does later is told what is wrong.
        last_ = Operator(graph, spec_.input(), match);
      }
    }
    return why;
  }

  // With the functions that list everything, for operators of other shapes or of unusual size.
  std::string_view check_slowly(const Operator& op, FitMask fit) {
    forget();
    last_ = op.in_table(spec_.variables());
    std::vector<std::string> found;
    for (const Rejection& rejection : quality_rejections(*last_, spec_, fit))
      found.emplace_back(rejection.reason);
    if (fit == 0) found.emplace_back(reason::kFit);
    for (const RejectionReason& rejection : cost_rejections(*last_, spec_))
      found.push_back(rejection.reason);
    for (const std::string_view name : kOrder) {
      if (std::find(found.begin(), found.end(), name) != found.end()) return name;
    }
    ensure(found.empty(), "OperatorChecker: a reason without a place in the order");
    return {};
  }

  std::int64_t macs() {
    if (!macs_) macs_ = total_macs(last(), spec_);
    return *macs_;
  }
  std::int64_t params() {
    if (!params_) params_ = total_params(last(), spec_);
    return *params_;
  }

 private:
  void forget() {
    macs_.reset();
    params_.reset();
    last_.reset();
    if (!extents_.full() && quality_.size() < kMaxAnswers) return;
    extents_.clear();
    quality_.clear();
  }

  const Operator& last() const {
    ensure(last_.has_value(), "OperatorChecker: costs of an operator that was rejected");
    return *last_;
  }

  std::string_view rejection_reason(const Graph& graph, const std::vector<CoordinateId>& match,
                                    FitMask fit) {
    if (const Reason why = QualityMemo::structure(graph, map_); !why.empty()) return why;
    if (fit == 0) return reason::kFit;
    if (const Reason why = quality_.pooling(map_, fit); !why.empty()) return why;
    const Limits& limits = spec_.limits();
    if (limits.min_params > 0 || limits.max_params > 0) {
      count_params(graph, match);
      if (limits.min_params > 0 && *params_ < limits.min_params) return kMinParams;
      if (limits.max_params > 0 && *params_ > limits.max_params) return kMaxParams;
    }
    if (limits.min_macs > 0 || limits.max_macs > 0) {
      count_macs(graph, match);
      if (limits.min_macs > 0 && *macs_ < limits.min_macs) return kMinMacs;
      if (limits.max_macs > 0 && *macs_ > limits.max_macs) return kMaxMacs;
    }
    return quality_.reads(map_, fit);
  }

  void count_params(const Graph& graph, const std::vector<CoordinateId>& match) {
    if (params_) return;
    std::int64_t sum = 0;
    bool overflow = false;
    for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
      if (!(map_.fit >> b & 1)) continue;
      std::int64_t all = 0;
      for (std::size_t t = 0; t < map_.weight_count; ++t) {
        std::int64_t elements = 1;
        for_each_bit(map_.weights[t], [&](int id) {
          const std::int64_t* values =
              extents_.values(map_.nodes[static_cast<std::size_t>(id)].extent);
          overflow = __builtin_mul_overflow(elements, values[b], &elements) || overflow;
        });
        overflow = __builtin_add_overflow(all, elements, &all) || overflow;
      }
      overflow = __builtin_mul_overflow(all, spec_.multiplicities()[b], &all) || overflow;
      overflow = __builtin_add_overflow(sum, all, &sum) || overflow;
    }
    params_ = overflow ? total_params(Operator(graph, spec_.input(), match), spec_) : sum;
  }

  void count_macs(const Graph& graph, const std::vector<CoordinateId>& match) {
    if (macs_) return;
    bool known = counter_.count(graph, map_, map_.fit);
    std::int64_t sum = 0;
    for (std::size_t b = 0; known && b < spec_.bindings().size(); ++b) {
      if (!(map_.fit >> b & 1)) continue;
      std::int64_t all = 0;
      known = !__builtin_mul_overflow(counter_.macs(b), spec_.multiplicities()[b], &all) &&
              !__builtin_add_overflow(sum, all, &sum);
    }
    macs_ = known ? sum : total_macs(Operator(graph, spec_.input(), match), spec_);
  }

  const Specification& spec_;
  ExtentTable extents_;
  QualityMemo quality_;
  MacsCounter counter_;
  CompactMap map_;
  std::optional<std::int64_t> macs_;
  std::optional<std::int64_t> params_;
  /// Where costs could not be counted, or the operator was checked slowly.
  std::optional<Operator> last_;
};

OperatorChecker::OperatorChecker(const Specification& spec)
    : state_(std::make_unique<State>(spec)) {}
OperatorChecker::~OperatorChecker() = default;
OperatorChecker::OperatorChecker(OperatorChecker&&) noexcept = default;

std::string_view OperatorChecker::rejection_reason(const Operator& op) {
  const Specification& spec = state_->spec();
  if (op.variables() != spec.variables() && *op.variables() != *spec.variables())
    return rejection_reason(op.in_table(spec.variables()));
  return rejection_reason(op, checked_fit(op, spec));
}

std::string_view OperatorChecker::rejection_reason(const Operator& op, FitMask fit) {
  const Specification& spec = state_->spec();
  if (op.variables() != spec.variables() && *op.variables() != *spec.variables())
    return rejection_reason(op.in_table(spec.variables()), fit);
  if (op.input() != spec.input()) return state_->check_slowly(op, fit);
  return state_->check(op.graph(), op.match(), fit);
}

std::string_view OperatorChecker::rejection_reason(const Graph& graph,
                                                   const std::vector<CoordinateId>& match,
                                                   FitMask fit) {
  return state_->check(graph, match, fit);
}

std::int64_t OperatorChecker::macs() {
  return state_->macs();
}

std::int64_t OperatorChecker::params() {
  return state_->params();
}

}  // namespace syno
