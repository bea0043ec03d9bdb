// Operators that everybody knows, as text, for the tests of every part. Each has a small binding whose extents differ
// where they can, so that a swapped dimension shows. zoo_texts_test.cpp checks them against loops of their definitions.
#pragma once

#include <array>
#include <string_view>

namespace syno {

struct ZooText {
  std::string_view name;
  std::string_view binding;
  std::string_view text;
};

/// y[n,o,h,w] = sum(i,a,b) x[n,i,h+a-k/2,w+b-k/2] * W[o,i,a,b]
inline constexpr ZooText kConv2d{"conv2d", "N=2, C_in=4, C_out=6, H=5, W=7, k=3", R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
contract o1:drop r0:keep r1:keep r2:keep
unfold o2 r1 -> c0
unfold o3 r2 -> c1
match o0 r0 c0 c1
)"};

/// y[n,o,h,w] = sum(i) x[n,i,h,w] * W[o,i]
inline constexpr ZooText kConv1x1{"conv1x1", "N=2, C_in=4, C_out=6, H=5, W=7", R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
contract o1:drop r0:keep
match o0 r0 o2 o3
)"};

/// y[n,t,o] = sum(i) x[n,t,i] * W[i,o]
inline constexpr ZooText kLinear{"linear", "N=2, T=5, C_in=4, C_out=6", R"(syno operator 1
out [N, T, C_out: unordered]
in [N, T, C_in: unordered]
reduce C_in -> r0
contract o2:drop r0:keep
match o0 o1 r0
)"};

/// y[n,c,h,w] = sum(a,b) x[n,c,h+a-k/2,w+b-k/2] * W[c,a,b]
inline constexpr ZooText kDepthwise{"depthwise", "N=2, C=4, H=5, W=7, k=3", R"(syno operator 1
out [N, C: unordered, H, W]
in [N, C: unordered, H, W]
reduce k -> r0
reduce k -> r1
contract o1:keep r0:keep r1:keep
unfold o2 r0 -> c0
unfold o3 r1 -> c1
match o0 o1 c0 c1
)"};

/// y[n,G*C_out/g+c,h,w] = sum(r,a,b) x[n,G*C_in/g+r,h+a-k/2,w+b-k/2] * W[G,c,r,a,b]
inline constexpr ZooText kGrouped{"grouped", "N=2, C_in=10, C_out=8, H=6, W=7, g=2, k=3",
                                  R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce g^-1*C_in -> r0
reduce k -> r1
reduce k -> r2
merge o1 g^-1*C_out -> c0 c1
contract c0:keep c1:drop r0:keep r1:keep r2:keep
split c0 r0 -> c2
unfold o2 r1 -> c3
unfold o3 r2 -> c4
match o0 c2 c3 c4
)"};

/// As grouped, with one weight for all groups: W[c,r,a,b]
inline constexpr ZooText kGroupedShared{
    "grouped-shared", "N=2, C_in=10, C_out=8, H=6, W=7, g=2, k=3", R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce g^-1*C_in -> r0
reduce k -> r1
reduce k -> r2
merge o1 g^-1*C_out -> c0 c1
contract c1:drop r0:keep r1:keep r2:keep
split c0 r0 -> c2
unfold o2 r1 -> c3
unfold o3 r2 -> c4
match o0 c2 c3 c4
)"};

/// Depthwise, then conv1x1: sum(c,a,b) x[n,c,h+a-k/2,w+b-k/2] * W2[c,a,b] * W1[o,c]
inline constexpr ZooText kSeparable{"depthwise-separable", "N=2, C_in=4, C_out=6, H=5, W=7, k=3",
                                    R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
contract o1:drop r0:keep
contract r0:keep r1:keep r2:keep
unfold o2 r1 -> c0
unfold o3 r2 -> c1
match o0 r0 c0 c1
)"};

/// Taps at h + k*a - k^2/2, not centred: the window of k^2 is strided by k.
inline constexpr ZooText kDilated{"dilated", "N=1, C_in=4, C_out=6, H=10, W=11, k=3",
                                  R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
contract o1:drop r0:keep r1:keep r2:keep
stride r1 k -> c0
stride r2 k -> c1
unfold o2 c0 -> c2
unfold o3 c1 -> c3
match o0 r0 c2 c3
)"};

/// Sum over s x s blocks, a k x k convolution at H/s x W/s, each result repeated s x s times.
inline constexpr ZooText kPooledConv{"pooled-conv", "N=2, C_in=4, C_out=6, H=8, W=10, k=3, s=2",
                                     R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
reduce k -> r1
reduce k -> r2
reduce s -> r3
reduce s -> r4
merge o2 s -> c0 c1
merge o3 s -> c2 c3
expand c1
expand c3
contract o1:drop r0:keep r1:keep r2:keep
unfold c0 r1 -> c4
unfold c2 r2 -> c5
split c4 r3 -> c6
split c5 r4 -> c7
match o0 r0 c6 c7
)"};

/// y[n,c,h*s+a,w*s+b] = x[n,c*s*s+a*s+b,h,w]
inline constexpr ZooText kPixelShuffle{"pixel-shuffle", "N=2, C=3, H=5, W=7, s=2",
                                       R"(syno operator 1
out [N, C: unordered, s*H, s*W]
in [N, s^2*C: unordered, H, W]
merge o2 s -> c0 c1
merge o3 s -> c2 c3
split o1 c1 -> c4
split c4 c3 -> c5
match o0 c5 c0 c2
)"};

/// y[n,c*s*s+a*s+b,h,w] = x[n,c,h*s+a,w*s+b]
inline constexpr ZooText kPixelUnshuffle{"pixel-unshuffle", "N=2, C=3, H=5, W=7, s=2",
                                         R"(syno operator 1
out [N, s^2*C: unordered, H, W]
in [N, C: unordered, s*H, s*W]
merge o1 s -> c0 c1
merge c0 s -> c2 c3
split o2 c3 -> c4
split o3 c1 -> c5
match o0 c2 c4 c5
)"};

/// y[n,o,h,w] = sum(i) x[n,i,(h+1) mod H,(w+1) mod W] * W[o,i]
inline constexpr ZooText kShiftConv{"shift-conv", "N=2, C_in=4, C_out=6, H=5, W=7",
                                    R"(syno operator 1
out [N, C_out: unordered, H, W]
in [N, C_in: unordered, H, W]
reduce C_in -> r0
contract o1:drop r0:keep
shift o2 1 -> c0
shift o3 1 -> c1
match o0 r0 c0 c1
)"};

/// y[n,o,h,w] = sum(i,a) x[n,i,w,h+a-k/2] * W[o,i,a]
inline constexpr ZooText kSwappedConv1d{"conv1d-swapped", "N=2, C_in=4, C_out=6, H=5, k=3",
                                        R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
reduce k -> r1
contract o1:drop r0:keep r1:keep
unfold o2 r1 -> c0
match o0 r0 o3 c0
)"};

/// y[n,q,r*H+j] = sum(i) x[n,q,i] * W[i,j] for every r < t
inline constexpr ZooText kTiledProjection{"tiled-projection", "N=2, T=5, C_in=4, H=6, t=3",
                                          R"(syno operator 1
out [N, T, t*H]
in [N, T, C_in: unordered]
reduce C_in -> r0
merge o2 H -> c0 c1
expand c0
contract c1:drop r0:keep
match o0 o1 r0
)"};

/// y[n,q,g*j+g/k*m+c] = sum(i) x[n,q,H/k*m+i] * W[j,i,c]: the projection found for GPT-2, with k = 2.
inline constexpr ZooText kGpt2Projection{"gpt2-projection", "N=2, T=5, H=12, g=6, k=2, t=3",
                                         R"(syno operator 1
out [N, T, t*H]
in [N, T, H: unordered]
reduce k^-1*H -> r0
merge o2 g -> c0 c1
merge c1 g*k^-1 -> c2 c3
contract c0:drop c3:drop r0:keep
split c2 r0 -> c4
match o0 o1 c4
)"};

/// u = ((h*s+q+1) mod (s*H)) / s, p = (h*s+q+1) mod s
/// y[n,o,h,w] = sum(i,a,q<s) x[n,i,u,w+a-k/2] * W[p,o,a,i]
inline constexpr ZooText kWindowByRotation{"window-by-rotation",
                                           "N=2, C_in=4, C_out=6, H=5, k=3, s=2", R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
reduce k -> r1
reduce s -> r2
split o2 r2 -> c0
shift c0 1 -> c1
merge c1 s -> c2 c3
contract o1:drop r0:keep r1:keep c3:drop
unfold o3 r1 -> c4
match o0 r0 c2 c4
)"};

/// Z[n,G,h,w,c] = sum(r,b) x[n,G*C_in/g+r,h,w+b-k/2] * W2[G*C_in/g+r,b,c], c < C_out/(g*s)
/// y[n,o,h,w] = sum(G,a,b,c) Z[n,G,h+a-k/2,w+b-k/2,c] * W1[G,a,b,o,c]
inline constexpr ZooText kStackedConv{"stacked-conv", "N=1, C_in=8, C_out=12, H=5, g=2, k=3, s=2",
                                      R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce g -> r0
reduce k -> r1
reduce k -> r2
reduce k -> r3
reduce g^-1*s^-1*C_out -> r4
reduce g^-1*C_in -> r5
contract o1:drop r0:keep r1:keep r2:keep r4:keep
split r0 r5 -> c0
contract c0:keep r3:keep r4:join
unfold o2 r1 -> c1
unfold o3 r2 -> c2
unfold c2 r3 -> c3
match o0 c0 c1 c3
)"};

/// Z[n,G,h,w,q,c] = sum(r) x[n,G*C_in/g+r,h,w+q-k/2] * W2[G*C_in/g+r,q,c], c < C_out/(g*s)
/// y[n,o,h,w] = sum(G,a,q,c) Z[n,G,h+a-k/2,w,q,c] * W1[G,a,q,o,c]
inline constexpr ZooText kOperator1{"operator-1", "N=1, C_in=8, C_out=12, H=5, g=2, k=3, s=2",
                                    R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce g -> r0
reduce k -> r1
reduce k -> r2
reduce g^-1*s^-1*C_out -> r3
reduce g^-1*C_in -> r4
contract o1:drop r0:keep r1:keep r2:keep r3:keep
split r0 r4 -> c0
contract c0:keep r2:keep r3:join
unfold o2 r1 -> c1
unfold o3 r2 -> c2
match o0 c0 c1 c2
)"};

/// Z[n,G,h,w,c] = sum(r,q) x[n,G*C_in/g+r,h,w+q-k/2] * W2[G*C_in/g+r,q,c], c < C_out/(g*s)
/// y[n,o,h,w] = sum(G,a,c) Zs[n,G,h+a-k/2,w,c] * W1[o,G,a,c], Zs[.,p] = Z[.,(p+1) mod H], bound first
inline constexpr ZooText kOperator2{"operator-2", "N=1, C_in=8, C_out=12, H=5, g=2, k=3, s=2",
                                    R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce g -> r0
reduce k -> r1
reduce k -> r2
reduce g^-1*s^-1*C_out -> r3
reduce g^-1*C_in -> r4
contract o1:drop r0:keep r1:keep r3:keep
split r0 r4 -> c0
contract c0:keep r2:keep r3:join
unfold o2 r1 -> c1
shift c1 1 -> c2
unfold o3 r2 -> c3
match o0 c0 c2 c3
)"};

/// u = ((h*s+q+1) mod (s*H)) / s, p = (h*s+q+1) mod s
/// y[n,o,h,w] = sum(i,a,q<s) x[n,i,(w+1) mod H,u+a-k/2] * A[o,p] * B[i,a,o]
inline constexpr ZooText kOperator07795{"operator-07795", "N=2, C_in=4, C_out=6, H=5, k=3, s=2",
                                        R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
reduce k -> r1
reduce s -> r2
split o2 r2 -> c0
shift c0 1 -> c1
merge c1 s -> c2 c3
contract o1:keep c3:drop
contract o1:join r0:keep r1:keep
unfold c2 r1 -> c4
shift o3 1 -> c5
match o0 r0 c5 c4
)"};

inline constexpr std::array kZooTexts{
    kConv2d,           kConv1x1,     kLinear,        kDepthwise,       kGrouped,
    kGroupedShared,    kSeparable,   kDilated,       kPooledConv,      kPixelShuffle,
    kPixelUnshuffle,   kShiftConv,   kSwappedConv1d, kTiledProjection, kGpt2Projection,
    kWindowByRotation, kStackedConv, kOperator1,     kOperator2,       kOperator07795};

}  // namespace syno
