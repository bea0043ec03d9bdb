// Operators of the paper in the variables of its presets, for tests.
#pragma once

namespace syno {

inline constexpr const char* kOperator1 = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce g -> G
reduce k_1 -> a
reduce k_1 -> q
reduce g^-1*s^-1*C_out -> c
reduce g^-1*C_in -> r
contract o1:drop G:keep a:keep q:keep c:keep
split G r -> i
contract i:keep q:keep c:join
unfold o2 a -> h
unfold o3 q -> w
match o0 i h w
)";

}  // namespace syno
