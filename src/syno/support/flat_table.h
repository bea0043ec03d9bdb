// A hash table in one block of memory: open addressing with linear probing, and nothing is ever taken out of it.
//
// What a slot holds is its user's affair; the table asks it two things:
//
//     struct Slot {                            // Slot() is free
//       bool is_free() const;
//       std::uint64_t hash() const;            // of a slot that is not free; what `find` is asked with
//     };
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace syno {

template <class Slot>
class FlatTable {
 public:
  /// `slots`: how many there are at first, a power of two.
  explicit FlatTable(std::size_t slots) : slots_(slots) {}

  /// The slot that `is_it` recognises, otherwise the free one where it belongs. Good until `room` or `clear`.
  template <class IsIt>
  Slot& find(std::uint64_t hash, const IsIt& is_it) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = static_cast<std::size_t>(hash) & mask;
    while (!slots_[place].is_free() && !is_it(slots_[place])) place = (place + 1) & mask;
    return slots_[place];
  }

  /// Makes room for one more beside `used` ones. To be called before the `find` whose slot is filled.
  void room(std::size_t used) {
    if (3 * (used + 1) > 2 * slots_.size()) grow();
  }

  void clear(std::size_t slots) {
    slots_.clear();
    slots_.resize(slots);
  }
  std::size_t slot_count() const { return slots_.size(); }

 private:
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old) {
      if (!slot.is_free()) find(slot.hash(), [](const Slot&) { return false; }) = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
};

}  // namespace syno
