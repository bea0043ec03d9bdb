// Turns an order of steps into stages over tensors with named dimensions.
#pragma once

#include "syno/plan/order.h"
#include "syno/plan/plan.h"

namespace syno {

/// Stages for `order`. Windows of the data are taken as late as possible, and inside a convolution where a contraction
/// sums them (convolution.h). All of Plan but `params`, bytes_moved and peak_bytes is filled in; with foldings in `order`,
/// fan_in is not that of training. `separate_weights` puts stages on weights alone into fold_stages.
Plan lower(const Network& network, const Order& order, bool separate_weights = false);

}  // namespace syno
