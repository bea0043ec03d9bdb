#include "syno/quality/quality.h"

#include <algorithm>

#include "syno/interp/causality.h"
#include "syno/quality/coverage.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

class Checker {
 public:
  Checker(const Operator& op, const Specification& spec)
      : spec_(spec),
        map_(make_access_map(op)),
        parts_(components(map_)),
        pooling_(pooling_size(op)) {
    if (op.graph().weights().empty())
      rejections_.push_back({reason::kNoWeight, "the operator has no weight"});
    for (Rejection& rejection : wasted_steps(op)) rejections_.push_back(std::move(rejection));
    const auto marked = [](const Dimension& dim) { return dim.causal; };
    if (std::any_of(op.output().begin(), op.output().end(), marked) ||
        std::any_of(op.input().begin(), op.input().end(), marked)) {
      pairs_ = causal_pairs(op);
    }
  }

  void check(const Values& values) {
    values_ = &values;
    const Program program(map_, values);
    coverage(program);
    classes(program);
    pooling();
    causality(program);
  }

  std::vector<Rejection> take() { return std::move(rejections_); }

 private:
  void add(Reason reason, const std::string& what, bool undecided = false) {
    const auto place = std::find_if(rejections_.begin(), rejections_.end(),
                                    [&](const Rejection& known) { return known.reason == reason; });
    if (place != rejections_.end() && (undecided || !place->undecided)) return;
    Rejection rejection{reason, what + under(), undecided};
    if (place != rejections_.end()) {
      *place = std::move(rejection);
    } else {
      rejections_.push_back(std::move(rejection));
    }
  }

  std::string under() const {
    std::vector<std::string> parts;
    for (std::size_t v = 0; v < values_->size(); ++v) {
      if ((*values_)[v] > 0)
        parts.push_back(map_.variables->name(v) + "=" + std::to_string((*values_)[v]));
    }
    return parts.empty() ? "" : ", under " + join(parts, ", ");
  }

  void coverage(const Program& program) {
    const InputCoverage found = input_coverage(parts_, program);
    if (found.whole == Decision::kYes) return;
    if (found.whole == Decision::kUndecided) {
      add(reason::kInputUnread,
          "cannot decide whether every input element is read: too many points to check", true);
      return;
    }
    std::vector<std::string> index;
    for (const std::int64_t i : found.unread) index.push_back(i < 0 ? "any" : std::to_string(i));
    add(reason::kInputUnread, "input element [" + join(index, ", ") + "] is never read");
  }

  void classes(const Program& program) {
    const OutputClasses found = output_classes(parts_, map_, program);
    if (found.largest == 0) {
      add(reason::kOutputConstant, "every output is 0: all windows are completely outside");
    } else if (found.largest > spec_.limits().max_repeat) {
      // What is known is a lower bound even where some part is undecided.
      add(reason::kEqualOutputs, std::to_string(found.largest) +
                                     " output elements are equal for all inputs, max_repeat=" +
                                     std::to_string(spec_.limits().max_repeat));
    } else if (!found.decided) {
      add(reason::kEqualOutputs,
          "cannot decide whether outputs are equal: too many points to check", true);
    }
  }

  void pooling() {
    const std::int64_t factor = pooling_.evaluate(*values_).value_or(0);
    if (factor <= spec_.limits().max_pooling) return;
    add(reason::kPooling, std::to_string(factor) +
                              " elements are summed before any weight (reductions of size " +
                              pooling_.text(*map_.variables) +
                              "), max_pooling=" + std::to_string(spec_.limits().max_pooling));
  }

  void causality(const Program& program) {
    for (const auto& [out, in] : pairs_) {
      const FutureReads found = future_reads(parts_, map_, program, out, in);
      if (found.found == Decision::kNo) continue;
      add(reason::kReadsFuture, in_words(found, out, in), found.found == Decision::kUndecided);
    }
  }

  const Specification& spec_;
  AccessMap map_;
  std::vector<Component> parts_;
  Size pooling_;
  std::vector<std::pair<int, int>> pairs_;
  std::vector<Rejection> rejections_;
  const Values* values_ = nullptr;
};

FitMask size_fit(const Operator& op, const Specification& spec) {
  FitMask fit = spec.full_fit();
  for (const Coordinate& coordinate : op.graph().coordinates()) fit &= spec.fit(coordinate.extent);
  return fit;
}

}  // namespace

std::vector<Rejection> quality_rejections(const Operator& op, const Specification& spec,
                                          FitMask fit) {
  const Operator aligned = op.in_table(spec.variables());
  Checker checker(aligned, spec);
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    if (fit >> b & 1) checker.check(spec.bindings()[b]);
  }
  return checker.take();
}

FitMask checked_fit(const Operator& op, const Specification& spec) {
  FitMask fit = size_fit(op, spec);
  try {
    fit &= replay(spec, op.graph()).fit;
  } catch (const UserError&) {  // NOLINT(bugprone-empty-catch)
    // The ledger rejects a step: its business. Sizes alone say where the operator exists.
  }
  return fit;
}

std::vector<Rejection> quality_rejections(const Operator& op, const Specification& spec) {
  const Operator aligned = op.in_table(spec.variables());
  const FitMask fit = checked_fit(aligned, spec);
  std::vector<Rejection> rejections = quality_rejections(aligned, spec, fit);
  if (fit == 0) {
    rejections.push_back(
        {reason::kFit,
         spec.bindings().empty()
             ? "the specification has no bindings: only conditions that hold under any "
               "binding were checked"
             : "there is no binding under which all sizes are positive integers",
         spec.bindings().empty()});
  }
  return rejections;
}

}  // namespace syno
