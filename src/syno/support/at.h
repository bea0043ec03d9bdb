// An index of the project, which is an int, as the standard containers count.
#pragma once

#include <cstddef>

namespace syno {

/// The place of an element; the index is not negative.
constexpr std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace syno
