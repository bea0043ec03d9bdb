// The one printer of sums of indices: "3*h + w - 1", or "3*h+w-1" without spaces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syno {

class SumText {
 public:
  enum class Spaces : std::uint8_t { kNone, kAround };
  explicit SumText(Spaces spaces) : spaced_(spaces == Spaces::kAround) {}

  /// Adds factor * what; the number itself where `what` is empty.
  void add(std::int64_t factor, std::string_view what = {});
  /// "0" where nothing was added, or zeros alone.
  std::string text() const { return text_.empty() ? "0" : text_; }

 private:
  bool spaced_;
  std::string text_;
};

}  // namespace syno
