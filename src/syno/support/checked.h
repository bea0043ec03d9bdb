// 64-bit arithmetic in which an overflow is an error that names the computation, never a wrong number.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "syno/support/error.h"

namespace syno {

inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw UserError("overflow while computing " + std::string(what) + ": " + std::to_string(a) +
                    " * " + std::to_string(b) + " does not fit in 64 bits");
  }
  return result;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b, const char* what) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    throw UserError("overflow while computing " + std::string(what) + ": " + std::to_string(a) +
                    " + " + std::to_string(b) + " does not fit in 64 bits");
  }
  return result;
}

/// Floor division and its non-negative remainder, for a positive divisor.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - (a % b != 0 && a < 0 ? 1 : 0);
}
inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  return a - b * floor_divide(a, b);
}

/// Whether a double is an integer that converts to 64 bits and back.
inline bool is_whole(double value) {
  return std::floor(value) == value && std::abs(value) < 9e15;
}

}  // namespace syno
