#include "syno/emit/cpp/runtime.h"

#include "syno/support/threads.h"

namespace syno::cpp {

namespace {

constexpr std::string_view kVectors = R"source(#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace {

// --- vectors -------------------------------------------------------------------------------------

#if defined(__AVX512F__)
constexpr long kLanes = 16, kRegisters = 32;
#elif defined(__AVX__)
constexpr long kLanes = 8, kRegisters = 16;
#elif defined(__aarch64__)
constexpr long kLanes = 4, kRegisters = 32;
#else
constexpr long kLanes = 4, kRegisters = 16;
#endif
typedef float Vector __attribute__((vector_size(sizeof(float) * kLanes)));

inline Vector load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store(float* to, Vector v) { std::memcpy(to, &v, sizeof v); }
inline Vector splat(float value) { return value - Vector{}; }

// Stops the compiler from loading it again for each use.
#if defined(__x86_64__)
#define SYNO_HOLD(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define SYNO_HOLD(v) __asm__("" : "+w"(v))
#else
#define SYNO_HOLD(v)
#endif

inline long least(long a, long b) { return a < b ? a : b; }
inline long most(long a, long b) { return a > b ? a : b; }
constexpr long ceil_divide(long a, long b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

#define SYNO_UNROLL _Pragma("GCC unroll 16")

// Lanes [first, last) from memory, which is not touched outside of them; zeros elsewhere.
inline Vector load_part(const float* from, long first, long last) {
  first = most(first, 0);
  last = least(last, kLanes);
  if (last <= first) return Vector{};
#if defined(__AVX512F__)
  const unsigned mask = (0xffffu >> (kLanes - (last - first))) << first;
  return (Vector)_mm512_maskz_loadu_ps((__mmask16)mask, from);
#elif defined(__AVX2__)
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_and_si256(_mm256_cmpgt_epi32(lane, _mm256_set1_epi32((int)first - 1)),
                                        _mm256_cmpgt_epi32(_mm256_set1_epi32((int)last), lane));
  return (Vector)_mm256_maskload_ps(from, mask);
#else
  float lanes[kLanes] = {};
  for (long i = first; i < last; ++i) lanes[i] = from[i];
  return load(lanes);
#endif
}
inline void store_part(float* to, Vector v, long count) {
  if (count >= kLanes) {
    store(to, v);
  } else if (count > 0) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)(0xffffu >> (kLanes - count)), (__m512)v);
#else
    std::memcpy(to, &v, sizeof(float) * static_cast<std::size_t>(count));
#endif
  }
}

// The lanes of several vectors in turns.
template <int kCount>
struct Interleaved {
  Vector at[kCount];
};
inline Interleaved<2> interleaved(Vector a, Vector b) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  return {{(Vector)_mm512_permutex2var_ps((__m512)a, low, (__m512)b),
           (Vector)_mm512_permutex2var_ps((__m512)a, high, (__m512)b)}};
#elif defined(__AVX2__)
  const __m256 low = _mm256_unpacklo_ps((__m256)a, (__m256)b);
  const __m256 high = _mm256_unpackhi_ps((__m256)a, (__m256)b);
  return {{(Vector)_mm256_permute2f128_ps(low, high, 0x20),
           (Vector)_mm256_permute2f128_ps(low, high, 0x31)}};
#else
  float from[2][kLanes], lanes[2 * kLanes];
  store(from[0], a);
  store(from[1], b);
  for (long i = 0; i < 2 * kLanes; ++i) lanes[i] = from[i % 2][i / 2];
  return {{load(lanes), load(lanes + kLanes)}};
#endif
}
inline Interleaved<4> interleaved(Vector a, Vector b, Vector c, Vector d) {
  const Interleaved<2> ac = interleaved(a, c), bd = interleaved(b, d);
  const Interleaved<2> first = interleaved(ac.at[0], bd.at[0]);
  const Interleaved<2> last = interleaved(ac.at[1], bd.at[1]);
  return {{first.at[0], first.at[1], last.at[0], last.at[1]}};
}

// Rows and lanes change places.
inline void transpose(Vector (&rows)[kLanes]) {
SYNO_UNROLL
  for (long width = 1; width < kLanes; width *= 2) {
    Vector next[kLanes];
SYNO_UNROLL
    for (long i = 0; i < kLanes / 2; ++i) {
      const Interleaved<2> both = interleaved(rows[i], rows[i + kLanes / 2]);
      next[2 * i] = both.at[0];
      next[2 * i + 1] = both.at[1];
    }
SYNO_UNROLL
    for (long i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// Lanes [first, last) of a row of `length` that is rotated: lane i is at (i + turn) mod length, 0 <= turn < length.
// `from` is where lane 0 would be without the rotation, at place `at` of the row.
inline Vector load_rotated(const float* from, long at, long turn, long length, long first,
                           long last) {
  const long wrap = length - turn - at;
  return load_part(from + turn, first, least(last, wrap)) +
         load_part(from + turn - length, most(first, wrap), last);
}

inline long turn_of(long value, long length) { return (value % length + length) % length; }

// The same with a stride, and with any function of the lane.
inline Vector load_strided(const float* from, long stride, long first, long last) {
#if defined(__AVX512F__)
  first = most(first, 0);
  last = least(last, kLanes);
  if (last <= first) return Vector{};
  if (stride == 2) {
    // No element behind the last lane's is touched.
    const __m512 low = (__m512)load_part(from, 2 * first, 2 * last - 1);
    const __m512 high = (__m512)load_part(from + kLanes, 2 * first - kLanes, 2 * last - 1 - kLanes);
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return (Vector)_mm512_permutex2var_ps(low, even, high);
  }
  if (stride < (1 << 26)) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)stride));
    const unsigned mask = (0xffffu >> (kLanes - (last - first))) << first;
    return (Vector)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), (__mmask16)mask, places, from, 4);
  }
#endif
  float lanes[kLanes] = {};
  for (long i = most(first, 0); i < least(last, kLanes); ++i) lanes[i] = from[i * stride];
  return load(lanes);
}
// Where lanes stand, by the step of a sum and their number; kNowhere where there is a zero. When all
// lanes of a vector are near each other, places are counted from `start`, and `span` floats from
// there hold them: a load and a permutation instead of a load for each lane. Loops take kParts vectors at
// once, and so the last of them may lie behind the row, where all lanes are nowhere.
constexpr std::int32_t kNowhere = INT32_MIN;
template <long kSteps, long kLength, long kParts>
struct Places {
  static constexpr long kVectors = ceil_divide(kLength, kParts * kLanes) * kParts;
  std::int32_t at[kSteps][kVectors * kLanes];
  std::int32_t start[kSteps][kVectors];
  std::int32_t span[kSteps][kVectors];
  bool near;
};
template <long kSteps, long kLength, long kParts, class Place>
constexpr Places<kSteps, kLength, kParts> places_of(const Place& place) {
  Places<kSteps, kLength, kParts> places{};
  places.near = true;
  for (long s = 0; s < kSteps; ++s)
    for (long v = 0; v < places.kVectors; ++v) {
      std::int32_t first = INT32_MAX, last = kNowhere;
      for (long l = v * kLanes; l < (v + 1) * kLanes; ++l) {
        const std::int32_t at = l < kLength ? static_cast<std::int32_t>(place(s, l)) : kNowhere;
        places.at[s][l] = at;
        if (at != kNowhere && at < first) first = at;
        if (at > last) last = at;
      }
      places.start[s][v] = last == kNowhere ? 0 : first;
      const std::int64_t span = last == kNowhere ? 0 : std::int64_t{last} - first + 1;
      places.span[s][v] = static_cast<std::int32_t>(span);
      if (span > kLanes) places.near = false;
    }
  if (places.near)
    for (long s = 0; s < kSteps; ++s)
      for (long l = 0; l < places.kVectors * kLanes; ++l)
        if (places.at[s][l] != kNowhere) places.at[s][l] -= places.start[s][l / kLanes];
  return places;
}
template <class P>
inline Vector gather_at(const float* from, const P& places, long s, long l) {
  [[maybe_unused]] const float* const start = from + places.start[s][l / kLanes];
  [[maybe_unused]] const long span = places.span[s][l / kLanes];
#if defined(__AVX512F__)
  const __m512i at = _mm512_loadu_si512(&places.at[s][l]);
  const __mmask16 there = _mm512_cmpneq_epi32_mask(at, _mm512_set1_epi32(kNowhere));
  if (places.near)
    return (Vector)_mm512_maskz_permutexvar_ps(there, at, (__m512)load_part(start, 0, span));
  return (Vector)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), there, at, from, 4);
#elif defined(__AVX2__)
  const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&places.at[s][l]));
  const __m256i nowhere = _mm256_cmpeq_epi32(at, _mm256_set1_epi32(kNowhere));
  const __m256 there = _mm256_castsi256_ps(_mm256_andnot_si256(nowhere, _mm256_set1_epi32(-1)));
  if (places.near)
    return (Vector)_mm256_and_ps(
        there, _mm256_permutevar8x32_ps((__m256)load_part(start, 0, span), at));
  return (Vector)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), from, at, there, 4);
#else
  float lanes[kLanes] = {};
  const float* const origin = places.near ? start : from;
  for (long i = 0; i < kLanes; ++i)
    if (places.at[s][l + i] != kNowhere) lanes[i] = origin[places.at[s][l + i]];
  return load(lanes);
#endif
}
template <class Lane>
inline Vector gather(long count, const Lane& lane) {
  float lanes[kLanes] = {};
  for (long i = 0; i < least(count, kLanes); ++i) lanes[i] = lane(i);
  return load(lanes);
}
template <class Place>
inline void scatter(float* to, Vector v, long count, const Place& place) {
  float lanes[kLanes];
  store(lanes, v);
  for (long i = 0; i < least(count, kLanes); ++i) to[place(i)] = lanes[i];
}
)source";

constexpr std::string_view kLoops = R"source(
// How many vectors of a row are summed at once in registers, for `tile` rows.
constexpr long parts_of_row(long length, long tile) {
  const long fit = kRegisters / 2 / tile < 1 ? 1 : kRegisters / 2 / tile;
  const long vectors = ceil_divide(length, kLanes);
  return vectors < fit ? vectors : ceil_divide(vectors, ceil_divide(vectors, fit));
}
)source";

constexpr std::string_view kThreads = R"source(
// --- threads -------------------------------------------------------------------------------------

struct Team {
  long thread, threads;
  long begin(long work) const { return work * thread / threads; }
  long end(long work) const { return work * (thread + 1) / threads; }
};

// A team of one waits for nobody, also inside of a larger team, or of one of the caller's.
inline void wait_for_team(const Team& team) {
  if (team.threads <= 1) return;
#if defined(_OPENMP)
#pragma omp barrier
#endif
}

)source";

constexpr std::string_view kRuns = R"source(
inline long team_of(long threads) { return most(1, least(threads, kMostThreads)); }

// OpenMP may give fewer threads than `threads`, or one: the body knows how many there are.
template <class Body>
void run_team(int threads, const Body& body) {
#if defined(_OPENMP)
  if (threads > 1) {
#pragma omp parallel num_threads((int)team_of(threads))
    body(Team{omp_get_thread_num(), omp_get_num_threads()});
    return;
  }
#endif
  (void)threads;
  body(Team{0, 1});
}

// Phase p of image n is phase(p, n, shared, own, team): a team finishes one before the next begins.
// Threads take whole images as long as there is one for each; they share the others.
template <class Phase>
void run_images(int phases, long batch, int threads, float* workspace, long shared, long own,
                const Phase& phase) {
  run_team(threads, [=](const Team& team) {
    const long whole = batch / team.threads * team.threads;
    float* const mine = workspace + team.thread * (shared + own);
    for (long n = team.begin(whole); n < team.end(whole); ++n)
      for (int p = 0; p < phases; ++p) phase(p, n, mine, mine + shared, Team{0, 1});
    bool first = whole == 0;
    for (long n = whole; n < batch; ++n)
      for (int p = 0; p < phases; ++p) {
        if (!first) wait_for_team(team);
        first = false;
        phase(p, n, workspace, workspace + shared + team.thread * own, team);
      }
  });
}

// So that no thread waits long for one that has a tile more.
constexpr long kTilesOfThread = 4;

template <class C, class Y, class E = Plain>
void run_blocks(typename C::Words::Data data, const float* packed, Y y, const Team& team,
                const E& epilogue = {}) {
  constexpr long kTiles = Block<C>::kTiles;
  if constexpr (C::kSlices > 1 && !Tiling<C>::kOverColumns && !Block<C>::kRowsOutside) {
    // The slices of a point lie side by side: threads that shared slices would write to the same cache lines.
    if (kTiles >= kTilesOfThread * team.threads) {
      for (long slice = 0; slice < C::kSlices; ++slice)
        Block<C>::run(data + C::data(slice), packed + C::group(slice) * Tiling<C>::kPackedGroup,
                      y + C::result(slice), team.begin(kTiles), team.end(kTiles), epilogue);
      return;
    }
  }
  const long last = team.end(C::kSlices * kTiles);
  for (long i = team.begin(C::kSlices * kTiles); i < last;) {
    const long slice = i / kTiles;
    const long end = least(last, (slice + 1) * kTiles);
    Block<C>::run(data + C::data(slice), packed + C::group(slice) * Tiling<C>::kPackedGroup,
                  y + C::result(slice), i - slice * kTiles, end - slice * kTiles, epilogue);
    i = end;
  }
}

}  // namespace
)source";

}  // namespace

std::string runtime_text() {
  return std::string(kVectors) + std::string(formats_runtime_text()) +
         std::string(epilogue_runtime_text()) + std::string(kLoops) +
         std::string(contractions_runtime_text()) + std::string(kThreads) +
         std::string(depthwise_runtime_text()) +
         "// A system that starts no further thread lets OpenMP end the process.\nconstexpr long "
         "kMostThreads = " +
         std::to_string(kMaxThreads) + ";\n" + std::string(kRuns);
}

}  // namespace syno::cpp
