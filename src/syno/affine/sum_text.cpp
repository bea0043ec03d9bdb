#include "syno/affine/sum_text.h"

namespace syno {

void SumText::add(std::int64_t factor, std::string_view what) {
  if (factor == 0) return;
  const bool first = text_.empty();
  const char sign = factor < 0 ? '-' : '+';
  if (!first && spaced_) {
    text_ += {' ', sign, ' '};
  } else if (!first || factor < 0) {
    text_ += sign;
  }
  // The least integer has no opposite among signed ones.
  const auto bits = static_cast<std::uint64_t>(factor);
  const std::uint64_t size = factor < 0 ? 0 - bits : bits;
  if (what.empty() || size != 1) text_ += std::to_string(size);
  if (!what.empty() && size != 1) text_ += '*';
  text_ += what;
}

}  // namespace syno
