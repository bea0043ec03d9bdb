// Recognises contractions that a library's convolution does best: windows of one or two dimensions that the weight
// holds and the stage sums, where the weight does not depend on the windows' places.
#pragma once

#include <optional>

#include "syno/plan/plan.h"

namespace syno {

/// `data` are the dimensions of the data with the windows not yet taken (SpatialDim::padded stands for place and window),
/// `weight` those of the weight, `summed` what the stage sums. Nothing when the stage is not a convolution.
std::optional<ConvolutionDims> match_convolution(const Plan& plan, const std::vector<int>& data,
                                                 const std::vector<int>& weight,
                                                 const std::vector<int>& summed,
                                                 const std::vector<SpatialDim>& windows);

/// The dimensions of the result: batch, groups, out_channels, spatial.
std::vector<int> convolution_output(const ConvolutionDims& convolution);

}  // namespace syno
