#include "syno/emit/cpp/depthwise.h"

#include <cstdlib>
#include <limits>
#include <numeric>

#include "syno/emit/cpp/lanes.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"

namespace syno::cpp {
namespace {

// Fewer channels leave most of a vector unused.
constexpr std::int64_t kLeastChannels = 8;
// Words of a tile's columns, and their weights, stay in registers.
constexpr std::int64_t kMostTaps = 11;
constexpr std::int64_t kMostWords = 16;
constexpr std::int64_t kMostStep = 4;

class Matcher {
 public:
  Matcher(const LoopProgram& program, const LoopNest& nest) : program_(program) {
    found_.nest = nest;
  }

  std::optional<Depthwise> run() {
    if (!find_operands() || !find_lane() || !find_axes()) return std::nullopt;
    found_.data_start = address_.constant() + start_of(found_.rows) + start_of(found_.columns);
    found_.stored_start = stored_.constant();
    const std::int64_t taps = found_.extent(found_.columns.tap);
    const std::int64_t words = (found_.extent(found_.rows.tap) + 3) / 4;
    if (taps > kMostTaps || taps * words > kMostWords || found_.columns.step > kMostStep)
      return std::nullopt;
    return std::move(found_);
  }

 private:
  const LoopNest& nest() const { return found_.nest; }
  const Access& data() const { return nest().operands[found_.data]; }
  const Access& weight() const { return nest().operands[found_.weight]; }

  bool find_operands() {
    if (nest().operands.size() != 2 || nest().scale != 1) return false;
    const auto is_weight = [&](std::size_t o) {
      return program_.buffer(nest().operands[o].buffer).kind == BufferKind::kWeight;
    };
    if (is_weight(0) == is_weight(1)) return false;
    found_.data = is_weight(0) ? 1 : 0;
    found_.weight = 1 - found_.data;
    address_ = flat_address(program_, nest(), data());
    stored_ = flat_address(program_, nest(), nest().store);
    return address_.is_affine() && stored_.is_affine() && weight().conditions.empty();
  }

  bool find_lane() {
    for (std::size_t a = 0; a < nest().outputs; ++a) {
      const int axis = static_cast<int>(a);
      if (stored_.coefficient(axis) != 1 || address_.coefficient(axis) != 1) continue;
      if (!depends_on(weight(), axis) || in_conditions(data(), axis)) continue;
      found_.lane = axis;
      return nest().axes[a].extent >= kLeastChannels;
    }
    return false;
  }

  // The other axes of the result are one or two, and so are those that are summed; each of these slides over one.
  bool find_axes() {
    std::vector<int> outputs, taps;
    for (std::size_t a = 0; a < nest().axes.size(); ++a) {
      const int axis = static_cast<int>(a);
      if (axis == found_.lane) continue;
      if (address_.coefficient(axis) <= 0) return false;
      if (a >= nest().outputs) {
        taps.push_back(axis);
        continue;
      }
      if (depends_on(weight(), axis)) return false;
      outputs.push_back(axis);
    }
    if (outputs.empty() || outputs.size() > 2 || taps.empty() || taps.size() > 2) return false;
    // The inner one in memory is that of the columns.
    if (outputs.size() == 2 && address_.coefficient(outputs[0]) < address_.coefficient(outputs[1]))
      std::swap(outputs[0], outputs[1]);
    found_.columns.axis = outputs.back();
    if (outputs.size() == 2) found_.rows.axis = outputs[0];
    std::size_t bounded = 0;
    for (SlidingAxis* sliding : {&found_.columns, &found_.rows}) {
      if (sliding->axis < 0) continue;
      if (!slide(*sliding, taps)) return false;
      if (sliding->extent < kUnbounded) ++bounded;
    }
    return taps.empty() && bounded == data().conditions.size();
  }

  // Takes the axis from `taps` that slides over this one, if there is one.
  bool slide(SlidingAxis& sliding, std::vector<int>& taps) const {
    const std::int64_t of_axis = address_.coefficient(sliding.axis);
    sliding.stored = stored_.coefficient(sliding.axis);
    sliding.data = of_axis;
    sliding.extent = kUnbounded;
    for (const Condition& condition : data().conditions) {
      if (!condition.index.depends_on(sliding.axis)) continue;
      if (sliding.extent < kUnbounded || !condition.index.is_affine()) return false;
      sliding.extent = condition.extent;
      sliding.first = condition.index.constant();
      sliding.step = condition.index.coefficient(sliding.axis);
      if (sliding.step <= 0 || of_axis % sliding.step != 0) return false;
      sliding.data = of_axis / sliding.step;
      if (!takes_tap(sliding, taps, condition.index)) return false;
      return condition.index.terms().size() == (sliding.tap < 0 ? 1U : 2U);
    }
    // Nothing is left out: one place is what both steps are multiples of.
    if (taps.size() == 1 || (taps.size() == 2 && found_.rows.axis < 0))
      return take_free(sliding, taps);
    return taps.empty() || take_free(sliding, taps);
  }

  bool takes_tap(SlidingAxis& sliding, std::vector<int>& taps, const Index& index) const {
    for (std::size_t t = 0; t < taps.size(); ++t) {
      const std::int64_t step = index.coefficient(taps[t]);
      if (step == 0) continue;
      if (step < 0 || address_.coefficient(taps[t]) != step * sliding.data) return false;
      sliding.tap = taps[t];
      sliding.dilation = step;
      taps.erase(taps.begin() + static_cast<std::ptrdiff_t>(t));
      return true;
    }
    return true;
  }

  // A tap that no condition names slides over the axis whose step is nearest to its own.
  bool take_free(SlidingAxis& sliding, std::vector<int>& taps) const {
    const auto in_any = [&](int axis) { return in_conditions(data(), axis); };
    std::size_t best = taps.size();
    for (std::size_t t = 0; t < taps.size(); ++t) {
      if (in_any(taps[t])) continue;
      if (best == taps.size() || address_.coefficient(taps[t]) < address_.coefficient(taps[best]))
        best = t;
    }
    if (best == taps.size()) return true;
    const std::int64_t of_axis = address_.coefficient(sliding.axis);
    const std::int64_t of_tap = address_.coefficient(taps[best]);
    const std::int64_t common = std::gcd(of_axis, of_tap);
    sliding.data = common;
    sliding.step = of_axis / common;
    sliding.dilation = of_tap / common;
    sliding.tap = taps[best];
    taps.erase(taps.begin() + static_cast<std::ptrdiff_t>(best));
    return true;
  }

  // Places are counted from the first that is there; addresses from where i and a are 0.
  static std::int64_t start_of(const SlidingAxis& sliding) {
    return sliding.axis < 0 ? 0 : -sliding.first * sliding.data;
  }

  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int32_t>::max();

  const LoopProgram& program_;
  Index address_;
  Index stored_;
  Depthwise found_;
};

}  // namespace

std::optional<Depthwise> match_depthwise(const LoopProgram& program, const LoopNest& nest) {
  return Matcher(program, nest).run();
}

}  // namespace syno::cpp
