// Runs the operator that write_kernel wrote. Needs nothing of Syno: the kernel is plain C to its callers.
#include <cstdio>
#include <vector>

#include "conv1d.h"

int main() {
  constexpr long kBatch = 3;
  constexpr int kThreads = 2;
  const std::vector<float> x(kBatch * 2 * 20, 1.0f);
  const std::vector<float> weight(16 * 2 * 3, 0.5f);
  std::vector<float> packed(conv1d_packed_size());
  std::vector<float> workspace(conv1d_workspace_size(kThreads));
  std::vector<float> y(kBatch * 16 * 20);

  const float* const weights[] = {weight.data()};
  conv1d_pack(weights, packed.data());  // once
  conv1d_run(x.data(), packed.data(), y.data(), workspace.data(), kBatch, kThreads);
  std::printf("border %g, inside %g\n", y[0], y[1]);  // 2 channels, 2 or 3 taps, each 0.5
}
