// Operators of the paper in the variables of its presets, for tests.
#pragma once

namespace syno {

inline constexpr const char* kConv2d = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> i
reduce k_1 -> a
reduce k_1 -> b
contract o1:drop i:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 i h w
)";

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

// y[n,o,h,w] = sum(i,a,q<s) x[n,i,(w+1)%H,u+a-k/2] * A[o,p] * B[i,a,o],  u = ((s*h+q+1)%(s*H))/s,  p = (s*h+q+1)%s
inline constexpr const char* kOperator07795 = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce s -> q
reduce C_in -> i
reduce k_1 -> a
shift o3 1 -> v
split o2 q -> t
shift t 1 -> z
merge z s -> u p
contract o1:keep p:drop
contract o1:join i:keep a:keep
unfold u a -> h
match o0 i v h
)";

}  // namespace syno
