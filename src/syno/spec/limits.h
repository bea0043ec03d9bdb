// Limits: what a specification allows beyond shapes and variables. All have one descriptor each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "syno/support/options.h"

namespace syno {

struct Limits {
  std::int64_t max_depth = 12;
  std::int64_t max_chain_length = 6;
  std::int64_t max_weights = 2;
  std::int64_t max_reductions = 5;
  std::int64_t max_merges = 1;
  std::int64_t max_splits = 3;
  std::int64_t max_shifts = 2;
  std::int64_t max_strides = 0;
  std::int64_t max_unfolds = 4;
  std::int64_t max_shift_amount = 1;
  bool negative_shifts = false;
  std::int64_t max_repeat = 1;
  bool even_windows = false;
  bool element_wise_weights = false;
  double min_unfold_ratio = 2.3;
  std::int64_t max_window = 30;
  double max_reduction_ratio = 4.0;
  std::int64_t max_pooling = 8;
  std::int64_t max_size_variables = 3;
  std::int64_t max_size_power = 16;
  std::int64_t min_weight_params = 1;
  std::int64_t max_dropped = 2048;
  std::int64_t max_joined = 8;
  std::int64_t min_macs = 0;
  std::int64_t max_macs = 0;
  std::int64_t min_params = 0;
  std::int64_t max_params = 0;
  double min_fit = 1.0;

  friend bool operator==(const Limits&, const Limits&) = default;
};

std::span<const Option<Limits>> limit_options();
/// Throws UserError that lists the names when there is no such limit.
const Option<Limits>& limit_option(std::string_view name);
/// Checks type and minimum, then sets. Throws UserError.
void set_limit(Limits& limits, std::string_view name, double value);
/// Throws UserError for limits under which there is no operator, whatever the shapes: no steps, no weights, or a least
/// value above the largest.
void check_limits(const Limits& limits);

}  // namespace syno
