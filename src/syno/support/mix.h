// Mixers of 64-bit words. What they give must never change: random samples are made of mix_bits and semantic keys of
// mix_words. Identities that are stored are made by Hasher (hash.h); tables that never leave memory use table_hash.
#pragma once

#include <cstdint>

namespace syno {

inline constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ULL;

/// Every bit of the result depends on every bit of `x`, one to one: the finaliser of SplitMix64 (Steele, Lea, Flood,
/// "Fast Splittable Pseudorandom Number Generators", 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// The words that `a` stands for, followed by `b`. Two small words may collide: a sequence begins with mix_words(0, b).
constexpr std::uint64_t mix_words(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + kGoldenRatio + (a << 6) + (a >> 2))) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 30)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

/// A place in a table for two words, fast rather than good.
constexpr std::uint64_t table_hash(std::uint64_t a, std::uint64_t b = 0) {
  std::uint64_t x = (a * kGoldenRatio) ^ (b * 0xD6E8FEB86659FD93ULL);
  x ^= x >> 32;
  x *= 0xFF51AFD7ED558CCDULL;
  return x ^ (x >> 29);
}

}  // namespace syno
