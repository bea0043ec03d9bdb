#include "syno/quality/extent_table.h"

#include "syno/support/error.h"

namespace syno {
namespace {

constexpr std::size_t kFirstSlots = 1024;

}  // namespace

ExtentTable::ExtentTable(std::vector<Values> bindings)
    : bindings_(std::move(bindings)), slots_(kFirstSlots) {}

void ExtentTable::clear() {
  sizes_.clear();
  values_.clear();
  fits_.clear();
  slots_.clear(kFirstSlots);
}

ExtentTable::Number ExtentTable::number(const Size& size) {
  const std::uint64_t hash = SizeHash()(size);
  slots_.room(sizes_.size());
  Slot& slot = slots_.find(hash, [&](const Slot& other) { return sizes_[other.number] == size; });
  if (!slot.is_free()) return slot.number;
  if (sizes_.size() >= kMaxSizes) throw UserError("ExtentTable: too many different sizes");
  const auto number = static_cast<Number>(sizes_.size());
  slot = {static_cast<std::uint32_t>(hash), number};
  sizes_.push_back(size);
  fits_.push_back(0);
  for (std::size_t b = 0; b < bindings_.size(); ++b) {
    const std::int64_t value = size.extent(bindings_[b]).value_or(0);
    values_.push_back(value);
    if (value > 0) fits_.back() |= FitMask{1} << b;
  }
  return number;
}

}  // namespace syno
