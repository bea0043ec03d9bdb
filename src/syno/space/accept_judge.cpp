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

class OperatorJudge::State {
 public:
  explicit State(const Specification& spec)
      : spec_(spec), extents_(spec.bindings()), quality_(spec, extents_), counter_(extents_) {}

  const Specification& spec() const { return spec_; }

  std::string_view judge(const Graph& graph, const std::vector<CoordinateId>& match, FitMask fit) {
    forget();
    if (!quality_.usable() || graph.output() != spec_.output() ||
        !map_.read(graph, match, extents_)) {
      return judge_slowly(Operator(graph, spec_.input(), match), fit);
    }
    map_.fit &= spec_.full_fit();
    const std::string_view why = first_reason(graph, match, fit & map_.fit);
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
  std::string_view judge_slowly(const Operator& op, FitMask fit) {
    forget();
    last_ = op.in_table(spec_.variables());
    std::vector<std::string> found;
    for (const Refusal& refusal : quality_refusals(*last_, spec_, fit))
      found.emplace_back(refusal.reason);
    if (fit == 0) found.emplace_back(reason::kFit);
    for (const RefusalReason& refusal : cost_refusals(*last_, spec_))
      found.push_back(refusal.reason);
    for (const std::string_view name : kOrder) {
      if (std::find(found.begin(), found.end(), name) != found.end()) return name;
    }
    ensure(found.empty(), "OperatorJudge: a reason without a place in the order");
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
    ensure(last_.has_value(), "OperatorJudge: costs of an operator that was refused");
    return *last_;
  }

  std::string_view first_reason(const Graph& graph, const std::vector<CoordinateId>& match,
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
  /// Where costs could not be counted, or the operator was judged slowly.
  std::optional<Operator> last_;
};

OperatorJudge::OperatorJudge(const Specification& spec) : state_(std::make_unique<State>(spec)) {}
OperatorJudge::~OperatorJudge() = default;
OperatorJudge::OperatorJudge(OperatorJudge&&) noexcept = default;

std::string_view OperatorJudge::first_reason(const Operator& op) {
  const Specification& spec = state_->spec();
  if (op.variables() != spec.variables() && *op.variables() != *spec.variables())
    return first_reason(op.in_table(spec.variables()));
  return first_reason(op, judged_fit(op, spec));
}

std::string_view OperatorJudge::first_reason(const Operator& op, FitMask fit) {
  const Specification& spec = state_->spec();
  if (op.variables() != spec.variables() && *op.variables() != *spec.variables())
    return first_reason(op.in_table(spec.variables()), fit);
  if (op.input() != spec.input()) return state_->judge_slowly(op, fit);
  return state_->judge(op.graph(), op.match(), fit);
}

std::string_view OperatorJudge::first_reason(const Graph& graph,
                                             const std::vector<CoordinateId>& match, FitMask fit) {
  return state_->judge(graph, match, fit);
}

std::int64_t OperatorJudge::macs() {
  return state_->macs();
}

std::int64_t OperatorJudge::params() {
  return state_->params();
}

}  // namespace syno
