// What a size is worth under the bindings of a specification, computed once a thread: the same few hundred sizes are
// asked about by every step of a search.
#pragma once

#include <cstdint>
#include <memory>

#include "syno/spec/specification.h"
#include "syno/support/flat_table.h"

namespace syno {

struct SizeValues {
  Size size;
  /// Specification::legal.
  bool legal = false;
  /// Specification::fit.
  FitMask fit = 0;
  /// The bindings where the value is odd.
  FitMask odd = 0;
  /// Over all bindings.
  double sum = 0;
  /// One a binding; 0 where the size is no positive integer of 64 bits.
  const double* values = nullptr;

  /// The bindings where the value is at most, or at least, `limit`; 0 counts as a value.
  FitMask at_most(double limit, std::size_t bindings) const {
    FitMask mask = 0;
    for (std::size_t b = 0; b < bindings; ++b) mask |= FitMask{values[b] <= limit} << b;
    return mask;
  }
  FitMask at_least(double limit, std::size_t bindings) const {
    FitMask mask = 0;
    for (std::size_t b = 0; b < bindings; ++b) mask |= FitMask{values[b] >= limit} << b;
    return mask;
  }
};

/// The values of sizes under one specification, for one thread. References stay good until `tidy`.
class SizeTable {
 public:
  /// The calling thread's table of `spec`, and of its copies. Good until the thread asks for that of another one.
  static SizeTable& of(const Specification& spec);

  const SizeValues& at(const Specification& spec, const Size& size);
  /// Forgets everything once there is too much of it.
  void tidy();

  SizeTable();
  ~SizeTable();
  SizeTable(const SizeTable&) = delete;
  SizeTable& operator=(const SizeTable&) = delete;

 private:
  struct Entry : SizeValues {
    std::unique_ptr<double[]> storage;
  };
  struct Slot {
    std::unique_ptr<Entry> entry;
    bool is_free() const { return entry == nullptr; }
    std::uint64_t hash() const { return SizeHash()(entry->size); }
  };

  std::uint64_t identity_ = 0;
  FlatTable<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace syno
