// Option descriptors: one description gives the name in C++, Python, on the command line and in files, the default and
// the documentation.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

namespace syno {

/// One numeric option of `Owner`, a plain struct.
template <class Owner>
struct Option {
  using Member = std::variant<std::int64_t Owner::*, double Owner::*, bool Owner::*>;

  std::string_view name;
  Member member;
  /// The least value that makes sense.
  double minimum;
  std::string_view doc;

  std::string_view type() const {
    static constexpr std::string_view kTypes[] = {"integer", "real", "flag"};
    return kTypes[member.index()];
  }
  double get(const Owner& owner) const {
    return std::visit([&](auto field) { return static_cast<double>(owner.*field); }, member);
  }
};

}  // namespace syno
