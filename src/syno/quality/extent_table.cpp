#include "syno/quality/extent_table.h"

#include <array>
#include <bit>

#include "syno/support/error.h"

namespace syno {
namespace {

constexpr std::size_t kFirstSlots = 1024;

std::size_t hash(const Size& size) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(size);
  std::uint64_t x = (words[0] * 0x9E3779B97F4A7C15ULL) ^ (words[1] * 0xD6E8FEB86659FD93ULL);
  x ^= x >> 32;
  x *= 0xFF51AFD7ED558CCDULL;
  return static_cast<std::size_t>(x ^ (x >> 29));
}

}  // namespace

ExtentTable::ExtentTable(std::vector<Values> bindings)
    : bindings_(std::move(bindings)), slots_(kFirstSlots, 0) {}

void ExtentTable::clear() {
  sizes_.clear();
  values_.clear();
  fits_.clear();
  slots_.assign(kFirstSlots, 0);
}

void ExtentTable::grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (std::size_t n = 0; n < sizes_.size(); ++n) {
    std::size_t slot = hash(sizes_[n]) & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<std::uint32_t>(n + 1);
  }
}

ExtentTable::Number ExtentTable::number(const Size& size) {
  std::size_t slot = hash(size) & (slots_.size() - 1);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if (sizes_[slots_[slot] - 1] == size) return static_cast<Number>(slots_[slot] - 1);
  }
  if (sizes_.size() >= kMaxSizes) throw UserError("ExtentTable: too many different sizes");
  slots_[slot] = static_cast<std::uint32_t>(sizes_.size() + 1);
  const auto number = static_cast<Number>(sizes_.size());
  sizes_.push_back(size);
  fits_.push_back(0);
  for (std::size_t b = 0; b < bindings_.size(); ++b) {
    const std::int64_t value = size.extent(bindings_[b]).value_or(0);
    values_.push_back(value);
    if (value > 0) fits_.back() |= FitMask{1} << b;
  }
  if (2 * sizes_.size() > slots_.size()) grow();
  return number;
}

}  // namespace syno
