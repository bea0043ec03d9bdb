#include "syno/spec/size_values.h"

#include <array>
#include <bit>
#include <memory>

namespace syno {
namespace {

constexpr std::size_t kFirstSlots = 512;
constexpr std::size_t kMostEntries = std::size_t{1} << 16;
/// Specifications that one thread asks about in turns.
constexpr std::size_t kTables = 4;

std::uint64_t hash(const Size& size) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(size);
  std::uint64_t x = words[0] * 0x9E3779B97F4A7C15ULL ^ words[1] * 0xD6E8FEB86659FD93ULL;
  x ^= x >> 32;
  x *= 0xFF51AFD7ED558CCDULL;
  return x ^ x >> 29;
}

}  // namespace

struct SizeTable::Entry : SizeValues {
  std::unique_ptr<double[]> storage;
};

SizeTable::SizeTable() : slots_(kFirstSlots, nullptr) {}

SizeTable::~SizeTable() {
  for (const Entry* entry : slots_) delete entry;
}

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

void SizeTable::grow() {
  std::vector<Entry*> bigger(2 * slots_.size(), nullptr);
  for (Entry* entry : slots_) {
    if (entry == nullptr) continue;
    std::size_t slot = hash(entry->size) & (bigger.size() - 1);
    while (bigger[slot] != nullptr) slot = (slot + 1) & (bigger.size() - 1);
    bigger[slot] = entry;
  }
  slots_ = std::move(bigger);
}

const SizeValues& SizeTable::at(const Specification& spec, const Size& size) {
  std::size_t slot = hash(size) & (slots_.size() - 1);
  for (; slots_[slot] != nullptr; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot]->size == size) return *slots_[slot];
  }
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
  const SizeValues& result = *entry;
  slots_[slot] = entry.release();
  if (2 * ++count_ > slots_.size()) grow();
  return result;
}

}  // namespace syno
