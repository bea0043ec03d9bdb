#include "syno/plan/convolution.h"

#include <algorithm>

namespace syno {
namespace {

bool contains(const std::vector<int>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// A dimension that can be the second spatial one with a kernel of 1, so that the data need not be moved: the largest
// batch dimension, the last among equals. A free one stays in the batch, as its size is not known.
void add_plain_dim(const Plan& plan, ConvolutionDims& convolution) {
  int best = -1;
  for (const int dim : convolution.batch) {
    if (plan.dim(dim).role == DimRole::kFree) continue;
    if (best < 0 || plan.dim(dim).extent >= plan.dim(best).extent) best = dim;
  }
  if (best < 0) return;
  std::erase(convolution.batch, best);
  convolution.spatial.push_back({best, best, -1, 0, 0});
}

}  // namespace

std::optional<ConvolutionDims> match_convolution(const Plan& plan, const std::vector<int>& data,
                                                 const std::vector<int>& weight,
                                                 const std::vector<int>& summed,
                                                 const std::vector<SpatialDim>& windows) {
  if (windows.empty() || windows.size() > 2) return std::nullopt;
  ConvolutionDims found;
  found.spatial = windows;
  for (const int dim : data) {
    const bool spatial = std::any_of(windows.begin(), windows.end(),
                                     [&](const SpatialDim& w) { return w.padded == dim; });
    if (spatial) continue;
    if (!contains(weight, dim)) {
      if (contains(summed, dim)) return std::nullopt;
      found.batch.push_back(dim);
    } else {
      (contains(summed, dim) ? found.in_channels : found.groups).push_back(dim);
    }
  }
  for (const int dim : weight) {
    const bool window = std::any_of(windows.begin(), windows.end(),
                                    [&](const SpatialDim& w) { return w.window == dim; });
    if (window || contains(data, dim)) continue;
    if (contains(summed, dim)) return std::nullopt;
    found.out_channels.push_back(dim);
  }
  if (windows.size() == 1) add_plain_dim(plan, found);
  std::sort(found.spatial.begin(), found.spatial.end(),
            [&](const SpatialDim& a, const SpatialDim& b) {
              return std::find(data.begin(), data.end(), a.padded) <
                     std::find(data.begin(), data.end(), b.padded);
            });
  return found;
}

std::vector<int> convolution_output(const ConvolutionDims& convolution) {
  std::vector<int> dims = convolution.batch;
  dims.insert(dims.end(), convolution.groups.begin(), convolution.groups.end());
  dims.insert(dims.end(), convolution.out_channels.begin(), convolution.out_channels.end());
  for (const SpatialDim& spatial : convolution.spatial) dims.push_back(spatial.dim);
  return dims;
}

}  // namespace syno
