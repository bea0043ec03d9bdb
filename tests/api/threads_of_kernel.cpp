// Calls an exported operator with every number of threads, in scratch memory of the size that it asks for. It prints
// "right", or what is wrong.
#include <algorithm>
#include <climits>
#include <cstdio>
#include <vector>

#include "op.h"

namespace {

constexpr long kBatch = 3;
std::vector<float> x, packed, expected;

bool runs(long batch, int threads) {
  std::vector<float> y(batch * OUTPUTS, -1.0f), scratch(syno_op_workspace_size(threads));
  syno_op_run(x.data(), packed.data(), y.data(), scratch.data(), batch, threads);
  return std::equal(y.begin(), y.end(), expected.begin());
}

bool runs_by_phases(int parts) {
  std::vector<float> y(OUTPUTS, -1.0f), scratch(syno_op_workspace_size(parts));
  for (int phase = 0; phase < syno_op_phase_count(); ++phase)
    for (long part = 0; part < std::max(parts, 1); ++part)
      syno_op_phase(phase, x.data(), packed.data(), nullptr, nullptr, y.data(), scratch.data(),
                    part, parts);
  return std::equal(y.begin(), y.end(), expected.begin());
}

}  // namespace

int main() {
  std::vector<float> weights(WEIGHTS);
  for (long i = 0; i < WEIGHTS; ++i) weights[i] = static_cast<float>(i % 7 - 3);
  for (long i = 0; i < kBatch * INPUTS; ++i) x.push_back(static_cast<float>(i % 5 - 2));
  const float* const pointers[] = {weights.data()};
  packed.resize(syno_op_packed_size());
  syno_op_pack(pointers, packed.data());
  expected.resize(kBatch * OUTPUTS);
  std::vector<float> scratch(syno_op_workspace_size(1));
  syno_op_run(x.data(), packed.data(), expected.data(), scratch.data(), kBatch, 1);
  for (const int threads : {1, 2, 3, 8, 0, -1, INT_MIN, 513, 100'000, INT_MAX})
    for (const long batch : {0L, 1L, kBatch})
      if (!runs(batch, threads))
        return std::printf("batch %ld on %d threads is wrong\n", batch, threads), 1;
  for (const int parts : {1, 3, 0, -1, 513, 100'000})
    if (!runs_by_phases(parts)) return std::printf("%d parts are wrong\n", parts), 1;
#pragma omp parallel num_threads(3)
  for (const int threads : {1, 2})
    if (!runs(kBatch, threads)) std::printf("%d threads in a team are wrong\n", threads);
  std::puts("right");
}
