#include "syno/plan/partial_macs.h"

#include <algorithm>

namespace syno {
namespace {

// Some tables are padded so that loops over bindings need no rest.
std::size_t padded(std::size_t lanes) {
  return (lanes + 3) / 4 * 4;
}

bool has(CoordinateMask mask, CoordinateId id) {
  return (mask >> id & 1) != 0;
}

}  // namespace

PartialMacs::PartialMacs(ExtentTable& extents)
    : extents_(extents),
      lanes_(padded(extents.bindings().size())),
      extent_(kMaxCoordinates * lanes_, 1.0),
      room_(kMaxCoordinates * lanes_, 1.0),
      can_(kMaxCoordinates * lanes_, 1.0),
      does_(kMaxCoordinates * lanes_, 1.0),
      one_(lanes_, 1.0),
      product_(lanes_, 1.0),
      stayed_(lanes_, 1.0),
      sum_(lanes_, 0.0) {}

void PartialMacs::set_extent(CoordinateId id, const Size& size) {
  const std::int64_t* values = extents_.values(extents_.number(size));
  double* to = row(extent_, id);
  // Where a size does not fit, any number will do: it is not requested.
  for (std::size_t b = 0; b < extents_.bindings().size(); ++b)
    to[b] = static_cast<double>(std::max<std::int64_t>(values[b], 1));
}

bool PartialMacs::read(const Graph& graph) {
  nodes_.clear();
  weights_.clear();
  count_ = 0;
  reductions_ = 0;
  const std::size_t rank = graph.output().size();
  if (graph.coordinates().size() > kMaxCoordinates) return false;
  for (std::size_t d = 0; d < rank; ++d) set_extent(count_++, graph.output()[d].size);
  iterators_ = rank == 64 ? ~CoordinateMask{0} : (CoordinateMask{1} << rank) - 1;
  for (const Step& step : graph.steps()) {
    if (!add(step)) return false;
  }
  return true;
}

bool PartialMacs::push(const Step& step) {
  nodes_before_ = nodes_.size();
  weights_before_ = weights_.size();
  count_before_ = count_;
  reductions_before_ = reductions_;
  return add(step);
}

void PartialMacs::pop() {
  nodes_.resize(nodes_before_);
  weights_.resize(weights_before_);
  count_ = count_before_;
  reductions_ = reductions_before_;
}

bool PartialMacs::add(const Step& step) {
  const PrimitiveInfo& info = primitive_info(step.primitive);
  if (static_cast<std::size_t>(count_ + info.produces) > kMaxCoordinates) return false;
  if (info.kind == StepKind::kContraction) {
    CoordinateMask held = 0;
    for (const WeightDim& dim : step.dims) held |= coordinate_bit(dim.coordinate);
    weights_.push_back(held);
    return true;
  }
  Node node;
  node.slides = info.slides();
  for (int j = 0; j < info.consumes; ++j) node.in[j] = step.in[static_cast<std::size_t>(j)];
  for (int j = 0; j < info.produces; ++j) node.out[j] = count_++;
  if (info.kind == StepKind::kRepetition) return true;
  if (info.kind == StepKind::kReduction) {
    reductions_ |= coordinate_bit(node.out[0]);
    set_extent(node.out[0], step.size);
    return true;
  }
  const double* in = row(extent_, node.in[0]);
  double* out = row(extent_, node.out[0]);
  if (info.cuts()) {
    set_extent(node.out[1], step.size);
    const double* block = row(extent_, node.out[1]);
    for (std::size_t l = 0; l < lanes_; ++l) out[l] = std::max(1.0, in[l] / block[l]);
  } else if (info.joins()) {
    const double* second = row(extent_, node.in[1]);
    for (std::size_t l = 0; l < lanes_; ++l) out[l] = in[l] * second[l];
  } else if (info.scales()) {
    set_extent(node.out[0], step.size);
    for (std::size_t l = 0; l < lanes_; ++l) out[l] *= in[l];
  } else {
    std::copy_n(in, lanes_, out);
  }
  nodes_.push_back(node);
  return true;
}

// What can go on from each coordinate to where a flow may end: in `held`, or in `stays`. Everything else carries 1.
void PartialMacs::carry(CoordinateMask held, CoordinateMask stays) {
  for (CoordinateId id = 0; id < count_; ++id) {
    const bool ends = has(held | stays, id);
    std::copy_n(ends ? row(room_, id) : one_.data(), lanes_, row(can_, id));
  }
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    const Node& node = nodes_[n];
    const double* out = row(can_, node.out[0]);
    for (int j = 0; j < 2; ++j) {
      const CoordinateId id = node.in[j];
      if (id == kNoCoordinate || has(held, id)) continue;
      // Where a window is taken, its index is lost.
      if (node.slides && j == 1) continue;
      const double* room = row(room_, id);
      double* can = row(can_, id);
      if (node.out[1] != kNoCoordinate) {
        const double* second = row(can_, node.out[1]);
        for (std::size_t l = 0; l < lanes_; ++l) can[l] = std::min(room[l], out[l] * second[l]);
      } else {
        for (std::size_t l = 0; l < lanes_; ++l) can[l] = std::min(room[l], out[l]);
      }
    }
  }
}

// Sends from `sources` what can be carried. Afterwards does_ holds what passes through each coordinate; at the end of a
// flow, what arrives.
void PartialMacs::flow(CoordinateMask held, CoordinateMask stays, CoordinateMask sources) {
  carry(held, stays);
  for (CoordinateId id = 0; id < count_; ++id) {
    const bool starts = has(sources, id);
    std::copy_n(starts ? row(can_, id) : one_.data(), lanes_, row(does_, id));
  }
  for (const Node& node : nodes_) {
    // What ended in a dimension of the weight does not go on.
    const auto from = [&](int j) -> const double* {
      const CoordinateId id = node.in[j];
      return id == kNoCoordinate || has(held, id) ? one_.data() : row(does_, id);
    };
    const double* first = from(0);
    double* out = row(does_, node.out[0]);
    const double* can = row(can_, node.out[0]);
    if (node.out[1] != kNoCoordinate) {
      double* second = row(does_, node.out[1]);
      const double* can_second = row(can_, node.out[1]);
      for (std::size_t l = 0; l < lanes_; ++l) {
        out[l] = std::min(first[l], can[l]);
        second[l] = std::min(first[l] / out[l], can_second[l]);
      }
    } else if (node.in[1] != kNoCoordinate && !node.slides) {
      const double* second = from(1);
      for (std::size_t l = 0; l < lanes_; ++l) out[l] = std::min(first[l] * second[l], can[l]);
    } else {
      for (std::size_t l = 0; l < lanes_; ++l) out[l] = std::min(first[l], can[l]);
    }
  }
}

const std::vector<double>& PartialMacs::bound(CoordinateMask stays, const double* loss) {
  std::fill(sum_.begin(), sum_.end(), 0.0);
  const auto size = static_cast<std::size_t>(count_) * lanes_;
  const auto multiply = [&](std::vector<double>& product, CoordinateMask ends) {
    for_each_bit(ends, [&](int id) {
      const double* arrives = row(does_, static_cast<CoordinateId>(id));
      for (std::size_t l = 0; l < lanes_; ++l) product[l] *= arrives[l];
    });
  };
  for (const CoordinateMask held : weights_) {
    std::fill(product_.begin(), product_.end(), 1.0);
    std::fill(stayed_.begin(), stayed_.end(), 1.0);
    std::copy_n(extent_.begin(), size, room_.begin());
    flow(held, stays, iterators_);
    multiply(product_, held);
    multiply(stayed_, stays & ~held);
    // Reductions take the room that is left, and end in the weight alone.
    for (std::size_t i = 0; i < size; ++i) room_[i] = extent_[i] / does_[i];
    flow(held, 0, reductions_);
    multiply(product_, held);
    for (std::size_t l = 0; l < lanes_; ++l) {
      const double lost = loss == nullptr ? 1.0 : loss[l];
      sum_[l] += product_[l] * std::max(1.0, stayed_[l] / lost);
    }
  }
  return sum_;
}

}  // namespace syno
