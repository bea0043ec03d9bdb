#include "syno/support/hash.h"

namespace syno {

std::string Hash128::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[i] = kDigits[(high >> (60 - 4 * i)) & 15];
    text[16 + i] = kDigits[(low >> (60 - 4 * i)) & 15];
  }
  return text;
}

std::optional<Hash128> Hash128::parse(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  Hash128 hash;
  for (std::size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    std::uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
    std::uint64_t& half = i < 16 ? hash.high : hash.low;
    half = half << 4 | digit;
  }
  return hash;
}

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  std::uint64_t word = 0;
  int filled = 0;
  for (const char c : text) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (8 * filled);
    if (++filled == 8) {
      add(word);
      word = 0;
      filled = 0;
    }
  }
  if (filled != 0) add(word);
  return *this;
}

}  // namespace syno
