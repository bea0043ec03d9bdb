// SHA-256 (FIPS 180-4): for what outlives a process or crosses machines. Identities within Syno are Hash128 (hash.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace syno {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
/// 64 lower-case hexadecimal digits.
std::string hex(const Sha256& digest);

}  // namespace syno
