// A 128-bit hash that is the same on every machine, compiler and standard library. It is an identity, not a defence
// against adversaries: two independent 64-bit lanes, each a multiply-xorshift absorption of 64-bit words.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "syno/support/mix.h"

namespace syno {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(const Hash128&, const Hash128&) = default;

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
  /// Reads 32 hexadecimal digits; nothing when `text` is not a hash.
  static std::optional<Hash128> parse(std::string_view text);
};

/// Absorbs words in order; `finish` may be called at any time and does not change the state.
class Hasher {
 public:
  /// `tag` separates kinds of content, so that a size and a graph with the same words have different hashes.
  explicit Hasher(std::string_view tag) { add(tag); }

  Hasher& add(std::uint64_t word) {
    a_ = mix(a_ ^ (word * kGoldenRatio + 0x7F4A7C159E3779B9ULL));
    b_ = mix(b_ + (word ^ 0xD6E8FEB86659FD93ULL)) * 0xFF51AFD7ED558CCDULL;
    ++count_;
    return *this;
  }
  Hasher& add(std::int64_t word) { return add(static_cast<std::uint64_t>(word)); }
  Hasher& add(int word) { return add(static_cast<std::uint64_t>(static_cast<std::int64_t>(word))); }
  Hasher& add(const Hash128& hash) { return add(hash.high).add(hash.low); }
  Hasher& add(std::string_view text);

  Hash128 finish() const {
    return {mix(a_ ^ (count_ * 0xC4CEB9FE1A85EC53ULL)), mix(b_ ^ mix(a_) ^ count_)};
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ULL;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ULL;
    x ^= x >> 32;
    return x;
  }
  std::uint64_t a_ = 0x243F6A8885A308D3ULL;
  std::uint64_t b_ = 0x13198A2E03707344ULL;
  std::uint64_t count_ = 0;
};

}  // namespace syno

template <>
struct std::hash<syno::Hash128> {
  std::size_t operator()(const syno::Hash128& key) const noexcept {
    return static_cast<std::size_t>(key.low);
  }
};
