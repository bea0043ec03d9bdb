// Counter-based random numbers: value = f(seed, stream, counter). A stream can be re-created anywhere from its seed
// and number, so a resumed search needs no saved generator state.
#pragma once

#include <cstdint>

#include "syno/support/mix.h"

namespace syno {

class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::uint64_t stream)
      : key_(mix_bits(seed + kGoldenRatio) ^ mix_bits(stream * kGoldenRatio + 1)) {}

  /// 64 uniform bits.
  std::uint64_t next() { return mix_bits(mix_bits(key_ + counter_++ * kGoldenRatio) ^ key_); }

  /// Uniform in 0..bound-1, without bias (Lemire, "Fast Random Integer Generation in an Interval", 2019).
  std::uint64_t below(std::uint64_t bound) {
    if (bound == 0) return 0;
    while (true) {
      const Uint128 product = static_cast<Uint128>(next()) * bound;
      const auto low = static_cast<std::uint64_t>(product);
      if (low >= bound || low >= (0 - bound) % bound)
        return static_cast<std::uint64_t>(product >> 64);
    }
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  __extension__ using Uint128 = unsigned __int128;
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace syno
