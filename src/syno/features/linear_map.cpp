#include "syno/features/linear_map.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "syno/features/factors.h"
#include "syno/interp/interpreter.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr std::uint64_t kWeights = 0x77656967687473;
constexpr std::uint64_t kDirections = 0x646972656374;

// Uniform of variance 1: no function of the C library, whose last digits differ between machines.
float centred(CounterRandom& random) {
  return static_cast<float>(3.4641016151377544 * (random.uniform() - 0.5));
}

std::size_t product(const std::vector<std::int64_t>& extents) {
  std::size_t all = 1;
  for (const std::int64_t extent : extents) all *= static_cast<std::size_t>(extent);
  return all;
}

void check_terms(const std::vector<std::int64_t>& extents, std::int64_t most) {
  std::int64_t terms = 1;
  for (const std::int64_t extent : extents)
    if (terms <= most) terms = checked_multiply(terms, extent, "the terms of an operator");
  if (terms <= most) return;
  throw Complaint("the operator has too many terms to be examined as a linear map")
      .expected("at most " + std::to_string(most), "more")
      .hint("use a binding with smaller sizes")
      .error();
}

}  // namespace

LinearMap::LinearMap(const Operator& op, const Values& values, std::uint64_t seed,
                     std::int64_t most) {
  const OperatorShapes shapes = operator_shapes(op, values);
  const AccessTables tables = access_tables(op, values, most);
  const std::vector<std::int64_t>& extents = tables.extents;
  check_terms(extents, most);
  input_ = shapes.input;
  output_ = shapes.output;
  inputs_ = product(input_);
  outputs_ = product(output_);

  const Factors parts = factors(tables, TapOrder::kAscending, most);
  std::vector<int> outer(static_cast<std::size_t>(tables.outputs));
  std::iota(outer.begin(), outer.end(), 0);
  of_block_ = grid_offsets(parts.blocks, outer, extents);
  of_free_ = grid_offsets(parts.free, outer, extents);
  of_row_ = grid_offsets(parts.rows, outer, extents);
  blocks_ = of_block_.size();
  free_ = of_free_.size();
  rows_ = of_row_.size();
  taps_ = grid_offsets(parts.taps, {}, extents).size();
  ranks_ = grid_offsets(parts.ranks, {}, extents).size();
  place_.resize(outputs_);
  for (std::uint32_t b = 0; b < blocks_; ++b)
    for (std::uint32_t f = 0; f < free_; ++f)
      for (std::uint32_t r = 0; r < rows_; ++r)
        place_[of_block_[b] + of_free_[f] + of_row_[r]] = {b, f, r};

  read_.reserve(parts.reads.size());
  for (const std::int64_t at : parts.reads) read_.push_back(static_cast<std::int32_t>(at));

  for (std::size_t k = 0; k < tables.weights.size(); ++k) {
    const AccessTable& table = tables.weights[k];
    weights_.emplace_back(product(shapes.weights[k]));
    gathered_.push_back({table.index, std::vector<float>(table.index.size()),
                         grid_offsets(parts.blocks, table.variables, extents),
                         grid_offsets(parts.free, table.variables, extents),
                         grid_offsets(parts.taps, table.variables, extents),
                         grid_offsets(parts.ranks, table.variables, extents)});
  }
  sample_weights(seed);
}

void LinearMap::sample_weights(std::uint64_t seed) {
  for (std::size_t k = 0; k < gathered_.size(); ++k) {
    CounterRandom random(seed, kWeights + k);
    std::vector<float>& weight = weights_[k];
    for (float& value : weight) value = centred(random);
    Gathered& grid = gathered_[k];
    for (std::size_t i = 0; i < grid.index.size(); ++i)
      grid.values[i] = grid.index[i] < 0 ? 0.0F : weight[static_cast<std::size_t>(grid.index[i])];
  }
  set_matrix();
}

// Calls visit(block, free, tap, positions) for every term of W; positions[k] is that of weight k on its grid.
template <class Visit>
void LinearMap::for_each_term(Visit visit) const {
  std::vector<std::size_t> at(gathered_.size());
  InterruptPoll poll;
  for (std::size_t b = 0; b < blocks_; ++b) {
    for (std::size_t t = 0; t < taps_; ++t) {
      poll();
      for (std::size_t f = 0; f < free_; ++f) {
        for (std::size_t q = 0; q < ranks_; ++q) {
          for (std::size_t k = 0; k < at.size(); ++k) {
            const Gathered& grid = gathered_[k];
            at[k] = grid.block[b] + grid.free[f] + grid.tap[t] + grid.rank[q];
          }
          visit((b * taps_ + t) * free_ + f, at);
        }
      }
    }
  }
}

void LinearMap::set_matrix() {
  matrix_.assign(blocks_ * taps_ * free_, 0.0F);
  for_each_term([&](std::size_t element, const std::vector<std::size_t>& at) {
    float term = 1;
    for (std::size_t k = 0; k < at.size(); ++k) term *= gathered_[k].values[at[k]];
    matrix_[element] += term;
  });
}

std::vector<Probe> LinearMap::apply(const std::vector<Probe>& x) const {
  std::vector<Probe> y(outputs_);
  std::vector<Probe> sums(free_);
  for (std::size_t b = 0; b < blocks_; ++b) {
    for (std::size_t r = 0; r < rows_; ++r) {
      std::ranges::fill(sums, Probe{});
      for (std::size_t t = 0; t < taps_; ++t) {
        const std::int32_t from = read_[(b * rows_ + r) * taps_ + t];
        if (from < 0) continue;
        const Probe& value = x[static_cast<std::size_t>(from)];
        const float* weight = &matrix_[(b * taps_ + t) * free_];
        for (std::size_t f = 0; f < free_; ++f)
          for (std::size_t n = 0; n < kProbes; ++n) sums[f][n] += weight[f] * value[n];
      }
      for (std::size_t f = 0; f < free_; ++f) y[of_block_[b] + of_free_[f] + of_row_[r]] = sums[f];
    }
  }
  return y;
}

std::vector<Probe> LinearMap::apply_adjoint(const std::vector<Probe>& y) const {
  std::vector<Probe> x(inputs_);
  std::vector<Probe> values(free_);
  for (std::size_t b = 0; b < blocks_; ++b) {
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t f = 0; f < free_; ++f)
        values[f] = y[of_block_[b] + of_free_[f] + of_row_[r]];
      for (std::size_t t = 0; t < taps_; ++t) {
        const std::int32_t to = read_[(b * rows_ + r) * taps_ + t];
        if (to < 0) continue;
        Probe sum{};
        const float* weight = &matrix_[(b * taps_ + t) * free_];
        for (std::size_t f = 0; f < free_; ++f)
          for (std::size_t n = 0; n < kProbes; ++n) sum[n] += weight[f] * values[f][n];
        Probe& there = x[static_cast<std::size_t>(to)];
        for (std::size_t n = 0; n < kProbes; ++n) there[n] += sum[n];
      }
    }
  }
  return x;
}

void LinearMap::add_row(std::size_t element, float* row) const {
  const auto [b, f, r] = place_[element];
  for (std::size_t t = 0; t < taps_; ++t) {
    const std::int32_t from = read_[(b * rows_ + r) * taps_ + t];
    if (from >= 0) row[from] += matrix_[(b * taps_ + t) * free_ + f];
  }
}

// E|J v|^2 = tr(J^T J) and E|J^T J v|^2 = tr((J^T J)^2) for v of independent elements of variance 1 (Hutchinson, "A
// stochastic estimator of the trace of the influence matrix", 1990).
LinearMap::Moments LinearMap::jacobian_moments(std::uint64_t seed) const {
  constexpr std::size_t kDirectionCount = kProbes / 2;
  using Direction = std::array<float, kDirectionCount>;
  std::vector<std::vector<Direction>> directions, gradients;
  for (std::size_t k = 0; k < gathered_.size(); ++k) {
    CounterRandom random(seed, kDirections + k);
    std::vector<Direction> weight(weights_[k].size() + 1);  // the last one stands for a zero
    for (std::size_t i = 0; i + 1 < weight.size(); ++i)
      for (float& value : weight[i]) value = centred(random);
    directions.push_back(std::move(weight));
    gradients.emplace_back(weights_[k].size() + 1);
  }
  const auto element_of = [&](std::size_t k, std::size_t at) {
    const std::int64_t index = gathered_[k].index[at];
    return index < 0 ? weights_[k].size() : static_cast<std::size_t>(index);
  };
  const auto others = [&](const std::vector<std::size_t>& at, std::size_t k) {
    float factor = 1;
    for (std::size_t j = 0; j < at.size(); ++j)
      if (j != k) factor *= gathered_[j].values[at[j]];
    return factor;
  };
  std::vector<Direction> moved(matrix_.size());
  for_each_term([&](std::size_t element, const std::vector<std::size_t>& at) {
    for (std::size_t k = 0; k < at.size(); ++k) {
      const Direction& direction = directions[k][element_of(k, at[k])];
      const float factor = others(at, k);
      for (std::size_t n = 0; n < kDirectionCount; ++n) moved[element][n] += factor * direction[n];
    }
  });
  for_each_term([&](std::size_t element, const std::vector<std::size_t>& at) {
    for (std::size_t k = 0; k < at.size(); ++k) {
      Direction& gradient = gradients[k][element_of(k, at[k])];
      const float factor = others(at, k);
      for (std::size_t n = 0; n < kDirectionCount; ++n) gradient[n] += factor * moved[element][n];
    }
  });
  Moments moments;
  for (const Direction& element : moved)
    for (const float value : element) moments.first += static_cast<double>(value) * value;
  for (std::vector<Direction>& gradient : gradients) {
    gradient.pop_back();
    for (const Direction& element : gradient)
      for (const float value : element) moments.second += static_cast<double>(value) * value;
  }
  moments.first /= kDirectionCount;
  moments.second /= kDirectionCount;
  return moments;
}

std::vector<Probe> random_probes(std::size_t size, std::uint64_t seed, std::uint64_t stream) {
  CounterRandom random(seed, stream);
  std::vector<Probe> made(size);
  for (Probe& probe : made)
    for (float& value : probe) value = centred(random);
  return made;
}

}  // namespace syno
