#include "syno/plan/memory.h"

#include <algorithm>

#include "syno/support/checked.h"

namespace syno {
namespace {

constexpr std::int64_t kBytes = 4;
constexpr const char* kMoved = "bytes moved";
constexpr const char* kPeakMemory = "bytes of peak memory";

// A tensor in memory: the buffer that holds it and the step to the next element along each dimension; 0 repeats.
struct Layout {
  std::size_t buffer = 0;
  std::vector<std::int64_t> strides;
};

class Replay {
 public:
  explicit Replay(const Plan& plan) : plan_(plan), layouts_(plan.tensors.size()) {
    allocate(plan.input);
    for (const int weight : plan.weights) allocate(weight);
    for (const Stage& stage : plan.fold_stages) run(stage);
    moved_ = 0;
    held_ = bytes_.size();
    first_.assign(held_, 0);
  }

  MemoryUse use() {
    // For each buffer the first and the last of `stages` at which it is alive.
    std::vector<std::size_t> last(held_, kNever);
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      const Stage& stage = plan_.stages[i];
      is_view_.push_back(run(stage));
      last.resize(bytes_.size(), i);
      first_.resize(bytes_.size(), i);
      if (is_view_.back()) continue;
      last[buffer(stage.input)] = i;
      if (stage.weight >= 0) last[buffer(stage.weight)] = i;
    }
    last[buffer(plan_.output)] = plan_.stages.size();
    std::int64_t peak = 0;
    // With no stage at all, the output is the input.
    for (std::size_t i = 0; i < std::max<std::size_t>(plan_.stages.size(), 1); ++i) {
      std::int64_t alive = 0;
      for (std::size_t b = 0; b < bytes_.size(); ++b) {
        const bool held = b < held_ && (b == buffer(plan_.input) || last[b] != kNever);
        if (held || (b >= held_ && first_[b] <= i && i <= last[b]))
          alive = checked_add(alive, bytes_[b], kPeakMemory);
      }
      peak = std::max(peak, alive);
    }
    return {moved_, peak};
  }
  const std::vector<bool>& views() const { return is_view_; }

 private:
  static constexpr std::size_t kNever = ~std::size_t{0};

  const Layout& layout(int tensor) const { return layouts_[static_cast<std::size_t>(tensor)]; }
  std::size_t buffer(int tensor) const { return layout(tensor).buffer; }

  // A new buffer for the whole tensor, row-major.
  void allocate(int tensor) {
    const std::vector<std::int64_t> shape = plan_.shape(tensor);
    Layout& made = layouts_[static_cast<std::size_t>(tensor)];
    made.strides.assign(shape.size(), 1);
    std::int64_t elements = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      made.strides[d] = elements;
      elements = checked_multiply(elements, shape[d], kPeakMemory);
    }
    made.buffer = bytes_.size();
    bytes_.push_back(checked_multiply(elements, kBytes, kPeakMemory));
  }

  // Bytes of the elements that are there.
  std::int64_t stored(int tensor) const {
    const std::vector<std::int64_t> shape = plan_.shape(tensor);
    std::int64_t bytes = kBytes;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (layout(tensor).strides[d] != 0) bytes = checked_multiply(bytes, shape[d], kMoved);
    }
    return bytes;
  }

  // The layout of the result as a view of the input; false when there is none.
  bool view(const Stage& stage) {
    const Layout& from = layout(stage.input);
    Layout made = from;
    const std::vector<std::int64_t> in = plan_.shape(stage.input);
    const std::vector<std::int64_t> out = plan_.shape(stage.output);
    const auto axis = static_cast<std::size_t>(std::max(stage.axis, 0));
    const auto place = made.strides.begin() + static_cast<std::ptrdiff_t>(axis);
    switch (stage.kind) {
      case StageKind::kPermute:
        for (std::size_t d = 0; d < stage.order.size(); ++d)
          made.strides[d] = from.strides[static_cast<std::size_t>(stage.order[d])];
        break;
      case StageKind::kSplit: {
        const std::int64_t inner = *place;
        *place = inner * out[axis + 1];
        made.strides.insert(made.strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, inner);
        break;
      }
      case StageKind::kMerge: {
        // Along a dimension of one element any step will do.
        const bool behind = in[axis] == 1 || in[axis + 1] == 1 ||
                            from.strides[axis] == from.strides[axis + 1] * in[axis + 1];
        if (!behind) return false;
        if (in[axis + 1] != 1) *place = from.strides[axis + 1];
        made.strides.erase(made.strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
        break;
      }
      case StageKind::kSlice: *place *= stage.amount; break;
      case StageKind::kExpand: made.strides.insert(place, 0); break;
      case StageKind::kRoll:
      case StageKind::kWindow:
      case StageKind::kShear:
      case StageKind::kDiagonal:
      case StageKind::kScale:
      case StageKind::kSum:
      case StageKind::kContraction:
      case StageKind::kConvolution: return false;
    }
    layouts_[static_cast<std::size_t>(stage.output)] = std::move(made);
    return true;
  }

  // Whether the stage is a view.
  bool run(const Stage& stage) {
    if (view(stage)) return true;
    moved_ = checked_add(moved_, stored(stage.input), kMoved);
    if (stage.weight >= 0) moved_ = checked_add(moved_, stored(stage.weight), kMoved);
    allocate(stage.output);
    moved_ = checked_add(moved_, bytes_.back(), kMoved);
    return false;
  }

  const Plan& plan_;
  std::vector<Layout> layouts_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::size_t> first_;
  std::vector<bool> is_view_;
  std::int64_t moved_ = 0;
  /// Buffers that are there before `stages` run.
  std::size_t held_ = 0;
};

}  // namespace

MemoryUse memory_use(const Plan& plan) {
  return Replay(plan).use();
}

std::vector<bool> views_among_stages(const Plan& plan) {
  Replay replay(plan);
  replay.use();
  return replay.views();
}

}  // namespace syno
