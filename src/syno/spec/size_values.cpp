#include "syno/spec/size_values.h"

#include <array>
#include <memory>
#include <utility>

namespace syno {
namespace {

constexpr std::size_t kFirstSlots = 512;
constexpr std::size_t kMostEntries = std::size_t{1} << 16;
/// Specifications that one thread asks about in turns.
constexpr std::size_t kTables = 4;

}  // namespace

SizeTable::SizeTable() : slots_(kFirstSlots) {}
SizeTable::~SizeTable() = default;

SizeTable& SizeTable::of(const Specification& spec) {
  thread_local std::array<SizeTable, kTables> tables;
  thread_local SizeTable* last = &tables[0];
  thread_local std::size_t oldest = 0;
  if (last->identity_ == spec.identity()) return *last;
  for (SizeTable& table : tables) {
    if (table.identity_ == spec.identity()) return *(last = &table);
  }
  last = &tables[oldest];
  oldest = (oldest + 1) % kTables;
  std::destroy_at(last);
  std::construct_at(last);
  last->identity_ = spec.identity();
  return *last;
}

void SizeTable::tidy() {
  if (count_ < kMostEntries) return;
  const std::uint64_t identity = identity_;
  std::destroy_at(this);
  std::construct_at(this);
  identity_ = identity;
}

const SizeValues& SizeTable::at(const Specification& spec, const Size& size) {
  slots_.room(count_);
  Slot& slot =
      slots_.find(SizeHash()(size), [&](const Slot& other) { return other.entry->size == size; });
  if (!slot.is_free()) return *slot.entry;
  auto entry = std::make_unique<Entry>();
  entry->size = size;
  entry->legal = spec.legal(size);
  entry->storage = std::make_unique<double[]>(spec.bindings().size());
  entry->values = entry->storage.get();
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    const auto value = size.extent(spec.bindings()[b]);
    if (!value) continue;
    entry->fit |= FitMask{1} << b;
    entry->odd |= FitMask{*value % 2 == 1} << b;
    entry->storage[b] = static_cast<double>(*value);
    entry->sum += entry->storage[b];
  }
  slot.entry = std::move(entry);
  ++count_;
  return *slot.entry;
}

}  // namespace syno
