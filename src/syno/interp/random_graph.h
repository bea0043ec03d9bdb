// Random well-formed operators on small bindings, for property tests of everything that reads a graph.
//
// Any graph becomes an operator by taking its own frontier as the input shape, so nothing has to be searched for: steps
// are sampled one by one, and the frontier that is left, in a random order, is the input.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/interp/tensor.h"
#include "syno/sizes/variables.h"

namespace syno {

/// How often each kind of step is sampled, relative to the others; 0 leaves it out.
struct RandomMix {
  double split = 1;
  double merge = 1;
  double shift = 1;
  double expand = 0.4;
  double unfold = 1.5;
  double stride = 0.3;
  double reduce = 2;
  double contract = 1.5;
};

struct RandomOptions {
  RandomMix mix;
  int min_steps = 2;
  int max_steps = 9;
  int max_output_rank = 4;
  int min_weights = 0;
  int max_weights = 3;
  int max_reductions = 4;
  /// Dimensions of one weight.
  int max_weight_rank = 5;
  /// Whether windows may have an even size.
  bool even_windows = true;
  /// Share of the windows that end at their position (padding before only).
  double causal_windows = 0.0;
  /// Share of the windows that may be wider than what they slide over.
  double wide_windows = 0.1;
  /// Share of the shifts that shift cyclically the result of a window, when there is one.
  double shift_after_window = 0.5;
  /// Shifts are by 1..max_shift in either direction.
  int max_shift = 3;
  /// Share of the dimensions of output and input that are marked unordered.
  double unordered = 0.0;
  /// Output dimension 0 is N; no step takes it, and it is input dimension 0.
  bool batch = false;
  /// Primary variables get one of these values, times a divisor that merges can take out.
  std::vector<std::int64_t> extents{1, 2, 3, 7};
  std::int64_t max_extent = 14;
  /// Whether the input may have no dimension at all.
  bool scalar_input = false;
  /// Upper bounds under every binding: terms = output elements times the product of the reductions.
  std::int64_t max_terms = 20'000;
  std::int64_t max_elements = 20'000;
  /// How many different bindings under which every size is legal to look for; at least one is found.
  int bindings = 1;
};

struct RandomOperator {
  Operator op;
  /// bindings[0] is `binding`; there may be fewer than requested.
  Binding binding;
  std::vector<Binding> bindings;
  /// `binding` in the order of op.variables().
  Values values;
};

/// The same seed and options give the same operator on every machine. Throws UserError when the options leave nothing
/// to sample.
RandomOperator random_operator(std::uint64_t seed, const RandomOptions& options = {});

/// Uniform integers in -limit..limit, so that products are exact in any arithmetic.
Tensor<std::int64_t> random_integers(std::vector<std::int64_t> shape, std::uint64_t seed,
                                     std::int64_t limit = 3);

}  // namespace syno
