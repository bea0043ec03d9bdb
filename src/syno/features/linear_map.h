// An operator under one binding as a linear map with random weights, taken apart as factors.h says.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/interp/access_tables.h"

namespace syno {

/// So many vectors are mapped at once.
inline constexpr std::size_t kProbes = 8;
using Probe = std::array<float, kProbes>;

class LinearMap {
 public:
  /// Weights are sampled from `seed`: independent, uniform, of mean 0 and variance 1.
  /// Throws UserError as `access_tables` does, and where the map has more than `most` terms.
  LinearMap(const Operator& op, const Values& values, std::uint64_t seed,
            std::int64_t most = std::int64_t{1} << 24);

  /// Extents of the tensors, with all dimensions.
  const std::vector<std::int64_t>& input() const { return input_; }
  const std::vector<std::int64_t>& output() const { return output_; }
  std::size_t inputs() const { return inputs_; }
  std::size_t outputs() const { return outputs_; }
  std::size_t blocks() const { return blocks_; }
  std::size_t free() const { return free_; }
  std::size_t rows() const { return rows_; }
  std::size_t taps() const { return taps_; }
  /// The elements of each weight, in canonical order.
  const std::vector<std::vector<float>>& weights() const { return weights_; }

  /// Samples all weights again.
  void sample_weights(std::uint64_t seed);

  /// The map of vectors of inputs(), and its adjoint of vectors of outputs(), both row-major.
  std::vector<Probe> apply(const std::vector<Probe>& x) const;
  std::vector<Probe> apply_adjoint(const std::vector<Probe>& y) const;
  /// Adds the row of the output element with this row-major position to `row`, of inputs() elements.
  void add_row(std::size_t element, float* row) const;

  /// Estimates of tr(J^T J) and tr((J^T J)^2), J = dW/dw, by kProbes / 2 random directions.
  struct Moments {
    double first = 0;
    double second = 0;
  };
  Moments jacobian_moments(std::uint64_t seed) const;

 private:
  using Offsets = std::vector<std::size_t>;
  // A weight on the grid of the variables that it depends on; -1 where a window falls outside.
  struct Gathered {
    std::vector<std::int64_t> index;
    std::vector<float> values;
    Offsets block, free, tap, rank;
  };

  template <class Visit>
  void for_each_term(Visit visit) const;
  void set_matrix();

  std::vector<std::int64_t> input_, output_;
  std::size_t inputs_ = 1, outputs_ = 1;
  std::size_t blocks_ = 1, free_ = 1, rows_ = 1, taps_ = 1, ranks_ = 1;
  // Row-major positions of outputs are sums of these.
  Offsets of_block_, of_free_, of_row_;
  // By (block, row, tap): the element of x, or -1.
  std::vector<std::int32_t> read_;
  // By output element: its block, free and row.
  std::vector<std::array<std::uint32_t, 3>> place_;
  std::vector<Gathered> gathered_;
  std::vector<std::vector<float>> weights_;
  // By (block, tap, free).
  std::vector<float> matrix_;
};

/// Random vectors: independent, uniform, of mean 0 and variance 1.
std::vector<Probe> random_probes(std::size_t size, std::uint64_t seed, std::uint64_t stream);

}  // namespace syno
