#include "syno/emit/cpp/runtime.h"

namespace syno::cpp {

std::string_view formats_runtime_text() {
  return R"source(
// --- number formats ------------------------------------------------------------------------------
//
// Loops over rows compute in float32: they widen what they load, and round what they store.

typedef std::int32_t IntVector __attribute__((vector_size(sizeof(float) * kLanes)));
typedef std::uint32_t BitVector __attribute__((vector_size(sizeof(float) * kLanes)));
typedef std::uint16_t HalfVector __attribute__((vector_size(sizeof(std::uint16_t) * kLanes)));
typedef std::uint8_t ByteVector __attribute__((vector_size(kLanes)));

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define SYNO_BYTE_MASKS 1
inline unsigned long lanes_mask(long first, long last) {
  return (~0UL >> (64 - (last - first))) << first;
}
#endif

// The upper half of a float.
struct __attribute__((may_alias)) Bfloat16 {
  std::uint16_t bits;
  operator float() const {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

inline Vector widened(HalfVector halves) {
  return (Vector)(__builtin_convertvector(halves, BitVector) << 16);
}
// To the nearest, ties to even, in the upper halves of the lanes.
inline BitVector rounded(Vector v) {
  const BitVector bits = (BitVector)v;
  const BitVector up = bits + 0x7fff + ((bits >> 16) & 1);
  return (v != v ? bits | 0x400000 : up) & 0xffff0000;
}
inline HalfVector narrowed(Vector v) {
#if defined(__AVX512BF16__)
  return (HalfVector)_mm512_cvtneps_pbh((__m512)v);
#else
  return __builtin_convertvector(rounded(v) >> 16, HalfVector);
#endif
}

inline Vector load(const Bfloat16* from) {
  HalfVector halves;
  std::memcpy(&halves, from, sizeof halves);
  return widened(halves);
}
inline Vector load_part(const Bfloat16* from, long first, long last) {
  first = most(first, 0);
  last = least(last, kLanes);
  if (last <= first) return Vector{};
#if defined(SYNO_BYTE_MASKS)
  return widened((HalfVector)_mm256_maskz_loadu_epi16((__mmask16)lanes_mask(first, last), from));
#else
  HalfVector halves{};
  for (long i = first; i < last; ++i) halves[i] = from[i].bits;
  return widened(halves);
#endif
}
inline void store(Bfloat16* to, Vector v) {
  const HalfVector halves = narrowed(v);
  std::memcpy(to, &halves, sizeof halves);
}
inline void store_part(Bfloat16* to, Vector v, long count) {
  if (count >= kLanes) return store(to, v);
  if (count <= 0) return;
  const HalfVector halves = narrowed(v);
#if defined(SYNO_BYTE_MASKS)
  _mm256_mask_storeu_epi16(to, (__mmask16)lanes_mask(0, count), (__m256i)halves);
#else
  std::memcpy(to, &halves, sizeof(Bfloat16) * static_cast<std::size_t>(count));
#endif
}

// Unsigned codes of 8 bits: the number is (code - zero) * scale.
struct Codes {
  const std::uint8_t* at;
  float zero, scale;
  Codes operator+(long n) const { return {at + n, zero, scale}; }
  Codes operator-(long n) const { return {at - n, zero, scale}; }
  float operator[](long n) const { return (static_cast<float>(at[n]) - zero) * scale; }
};
struct CodesOut {
  std::uint8_t* at;
  float zero, factor;  // 1 / scale
  CodesOut operator+(long n) const { return {at + n, zero, factor}; }
  CodesOut operator-(long n) const { return {at - n, zero, factor}; }
  long operator-(CodesOut other) const { return at - other.at; }
};

// GCC 12 would widen one byte after the other.
inline IntVector widened(ByteVector bytes) {
#if defined(__AVX512F__)
  return (IntVector)_mm512_cvtepu8_epi32((__m128i)bytes);
#elif defined(__AVX2__)
  return (IntVector)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
#else
  return __builtin_convertvector(bytes, IntVector);
#endif
}
inline Vector numbers_of(ByteVector bytes, const Codes& codes) {
  const Vector v = __builtin_convertvector(widened(bytes), Vector);
  return (v - splat(codes.zero)) * splat(codes.scale);
}
inline ByteVector load_bytes(const std::uint8_t* from) {
  ByteVector bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}
inline Vector load(Codes from) { return numbers_of(load_bytes(from.at), from); }
inline Vector load_part(Codes from, long first, long last) {
  first = most(first, 0);
  last = least(last, kLanes);
  if (last <= first) return Vector{};
  ByteVector bytes{};
#if defined(SYNO_BYTE_MASKS)
  const auto mask = (__mmask16)lanes_mask(first, last);
  bytes = (ByteVector)_mm_maskz_loadu_epi8(mask, from.at);
#else
  for (long i = first; i < last; ++i) bytes[i] = from.at[i];
#endif
  const Vector v = numbers_of(bytes, from);
#if defined(SYNO_BYTE_MASKS)
  return (Vector)_mm512_maskz_mov_ps(mask, (__m512)v);
#else
  float lanes[kLanes] = {};
  for (long i = first; i < last; ++i) lanes[i] = v[i];
  return load(lanes);
#endif
}
// The nearest codes, ties to even; what lies outside becomes the least or the greatest code.
#if defined(__AVX512F__)
// The same without the bound above.
inline IntVector low_codes_of(Vector v, const CodesOut& to) {
  // NaN and what is far below 0 become the least integer.
  const __m512 bounded = _mm512_min_ps(_mm512_set1_ps(65536.0f), (__m512)(v * splat(to.factor)));
  const __m512i codes = _mm512_add_epi32(_mm512_cvtps_epi32(bounded),
                                         _mm512_set1_epi32(static_cast<int>(to.zero)));
  return (IntVector)_mm512_max_epi32(codes, _mm512_setzero_si512());
}
#endif
inline IntVector codes_of(Vector v, const CodesOut& to) {
#if defined(__AVX512F__)
  return (IntVector)_mm512_min_epi32((__m512i)low_codes_of(v, to), _mm512_set1_epi32(255));
#endif
  const Vector far = splat(65536.0f), round = splat(12582912.0f);  // 1.5 * 2^23
  v = v * splat(to.factor);
  v = v > -far ? v : -far;
  v = v < far ? v : far;
  v = (v + round) - round + splat(to.zero);
  v = v > Vector{} ? v : Vector{};
  v = v < splat(255.0f) ? v : splat(255.0f);
  return __builtin_convertvector(v, IntVector);
}
inline ByteVector bytes_of(Vector v, const CodesOut& to) {
#if defined(__AVX512F__)
  return (ByteVector)_mm512_cvtusepi32_epi8((__m512i)low_codes_of(v, to));
#else
  return __builtin_convertvector(codes_of(v, to), ByteVector);
#endif
}
inline void store(CodesOut to, Vector v) {
  const ByteVector bytes = bytes_of(v, to);
  std::memcpy(to.at, &bytes, sizeof bytes);
}
inline void store_part(CodesOut to, Vector v, long count) {
  if (count >= kLanes) return store(to, v);
  if (count <= 0) return;
  const ByteVector bytes = bytes_of(v, to);
#if defined(SYNO_BYTE_MASKS)
  _mm_mask_storeu_epi8(to.at, (__mmask16)lanes_mask(0, count), (__m128i)bytes);
#else
  std::memcpy(to.at, &bytes, static_cast<std::size_t>(count));
#endif
}

inline void put(Bfloat16* to, float v) {
  to->bits = narrowed(splat(v))[0];
}
inline void put(CodesOut to, float v) { *to.at = static_cast<std::uint8_t>(codes_of(splat(v), to)[0]); }
inline void put(float* to, float v) { *to = v; }

// The codes [begin, end) of a row: those in [first, last) as they are, and zeros in place of the others.
inline void copy_range(CodesOut to, Codes from, long begin, long end, long first, long last) {
  first = least(most(first, begin), end);
  last = most(least(last, end), first);
  const auto zero = static_cast<int>(to.zero);
  const auto size = [](long codes) { return static_cast<std::size_t>(codes); };
  if (first > begin) std::memset(to.at + begin, zero, size(first - begin));
  if (last > first) std::memcpy(to.at + first, from.at + first, size(last - first));
  if (end > last) std::memset(to.at + last, zero, size(end - last));
}
template <long kLength>
inline void copy_row(CodesOut to, Codes from, long first, long last) {
  if (first <= 0 && last >= kLength) std::memcpy(to.at, from.at, kLength);
  else copy_range(to, from, 0, kLength, first, last);
}

// Loads of any format, lane by lane where nothing better is known.
template <class From>
inline Vector load_rotated(From from, long at, long turn, long length, long first, long last) {
  const long wrap = length - turn - at;
  return load_part(from + turn, first, least(last, wrap)) +
         load_part(from + turn - length, most(first, wrap), last);
}
inline Vector load_strided(const Bfloat16* from, long stride, long first, long last) {
#if defined(SYNO_BYTE_MASKS)
  first = most(first, 0);
  last = least(last, kLanes);
  if (last <= first) return Vector{};
  if (stride == 2) {
    // Lane i is the lower half of word i; nothing behind the last lane is touched.
    const auto mask = (__mmask32)lanes_mask(2 * first, 2 * last - 1);
    return (Vector)((BitVector)_mm512_maskz_loadu_epi16(mask, from) << 16);
  }
#endif
  float lanes[kLanes] = {};
  for (long i = most(first, 0); i < least(last, kLanes); ++i) lanes[i] = from[i * stride];
  return load(lanes);
}
inline Vector load_strided(Codes from, long stride, long first, long last) {
  float lanes[kLanes] = {};
  for (long i = most(first, 0); i < least(last, kLanes); ++i) lanes[i] = from[i * stride];
  return load(lanes);
}
template <class From, class P>
inline Vector gather_at(From from, const P& places, long s, long l) {
  const auto start = from + places.start[s][l / kLanes];
  float lanes[kLanes] = {};
  const auto origin = places.near ? start : from;
  for (long i = 0; i < kLanes; ++i)
    if (places.at[s][l + i] != kNowhere) lanes[i] = origin[places.at[s][l + i]];
  return load(lanes);
}
template <class To, class Place>
inline void scatter(To to, Vector v, long count, const Place& place) {
  float lanes[kLanes];
  store(lanes, v);
  for (long i = 0; i < least(count, kLanes); ++i) put(to + place(i), lanes[i]);
}

// Words of 32 bits, of neighbouring terms: side by side, or one part of each.
inline IntVector words_of(Vector low, Vector high) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
  const __m512i turn = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                        23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return (IntVector)_mm512_permutexvar_epi16(turn, both);
#else
  return (IntVector)(rounded(low) >> 16 | rounded(high));
#endif
}
template <class To>
inline void store_lanes(To* to, IntVector words, long count) {
  store_part(reinterpret_cast<float*>(to), (Vector)words, count);
}
inline void store_words(Bfloat16* to, Vector low, Vector high, long count) {
  store_lanes(to, words_of(low, high), count);
}
inline void store_words(CodesOut to, Vector a, Vector b, Vector c, Vector d, long count) {
  store_lanes(to.at, codes_of(a, to) | codes_of(b, to) << 8 | codes_of(c, to) << 16 |
                         (IntVector)((BitVector)codes_of(d, to) << 24), count);
}
template <int kParts>
inline void store_parts(Bfloat16* to, Vector v, long count) {
  static_assert(kParts == 2);
  if (count <= 0) return;
#if defined(SYNO_BYTE_MASKS)
  const unsigned long lanes = lanes_mask(0, 2 * least(count, kLanes)) & 0x55555555UL;
  _mm512_mask_storeu_epi16(to, (__mmask32)lanes, (__m512i)(rounded(v) >> 16));
#else
  scatter(to, v, count, [](long lane) { return 2 * lane; });
#endif
}
template <int kParts>
inline void store_parts(CodesOut to, Vector v, long count) {
  static_assert(kParts == 4);
  if (count <= 0) return;
#if defined(SYNO_BYTE_MASKS)
  const unsigned long lanes = lanes_mask(0, 4 * least(count, kLanes)) & 0x1111111111111111UL;
  _mm512_mask_storeu_epi8(to.at, lanes, (__m512i)codes_of(v, to));
#else
  scatter(to, v, count, [](long lane) { return 4 * lane; });
#endif
}

// What contractions multiply, word by word.
//   kTerms                     terms of a word
//   load, splat                words of data or weights
//   add(sum, data, weights)    adds the products of all terms
//   kHead, first               words of a row before its weights, and what its sums begin with
struct Floats {
  static constexpr long kTerms = 1, kHead = 0;
  using Data = const float*;
  using Lanes = Vector;
  using Sum = Vector;
  static Vector load_words(const float* from) { return load(from); }
  static Vector splat_word(const float* from) { return splat(*from); }
  static void add(Vector& sum, Vector data, Vector weights) { sum += weights * data; }
  static Vector value(Vector sum) { return sum; }
};

template <class T>
inline IntVector load_ints(const T* from) {
  IntVector words;
  std::memcpy(&words, from, sizeof words);
  return words;
}
template <class T>
inline IntVector splat_int(const T* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return word - IntVector{};
}

struct Pairs {
  static constexpr long kTerms = 2, kHead = 0;
  using Data = const Bfloat16*;
  using Lanes = IntVector;
  using Sum = Vector;
  template <class T>
  static IntVector load_words(const T* from) { return load_ints(from); }
  template <class T>
  static IntVector splat_word(const T* from) { return splat_int(from); }
  static void add(Vector& sum, IntVector data, IntVector weights) {
#if defined(__AVX512BF16__)
    sum = (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)weights, (__m512bh)data);
#else
    const BitVector high = BitVector{} + 0xffff0000u;
    sum += (Vector)((BitVector)weights & high) * (Vector)((BitVector)data & high);
    sum += (Vector)((BitVector)weights << 16) * (Vector)((BitVector)data << 16);
#endif
  }
  static Vector value(Vector sum) { return sum; }
  static std::uint32_t word(const float* terms) {
    return static_cast<std::uint32_t>(words_of(splat(terms[0]), splat(terms[1]))[0]);
  }
};

// Unsigned data, signed weights. Sums begin with what the zero of the data contributes, so that they
// are sums of weight * (code - zero).
struct Quads {
  static constexpr long kTerms = 4, kHead = 1;
  // What a product needs besides its sum and its weights.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
  static constexpr long kOwnRegisters = 1;
#else
  static constexpr long kOwnRegisters = kRegisters;
#endif
  using Data = Codes;
  using Lanes = IntVector;
  using Sum = IntVector;
  static IntVector load_words(Codes from) { return load_ints(from.at); }
  static IntVector load_words(const float* from) { return load_ints(from); }
  static IntVector splat_word(Codes from) { return splat_int(from.at); }
  static IntVector splat_word(const float* from) { return splat_int(from); }
#if defined(__ARM_FEATURE_DOTPROD) && !defined(__ARM_FEATURE_MATMUL_INT8)
  // Both factors of a product are signed there: that of a code is code - 128.
  static constexpr std::int32_t kOffset = 128;
#else
  static constexpr std::int32_t kOffset = 0;
#endif
  static IntVector first(IntVector row_sums, Codes data) {
    return -row_sums * (static_cast<std::int32_t>(data.zero) - kOffset);
  }
  static void add(IntVector& sum, IntVector data, IntVector weights) {
#if defined(__AVX512VNNI__)
    // The intrinsic makes GCC 12 copy or spill the sums of a tile, and so do sums of an array in its place.
    IntVector own = sum;
    asm("vpdpbusd %2, %1, %0" : "+v"(own) : "v"(data), "vm"(weights));
    sum = own;
#elif defined(__AVX512BW__)
    // Pairs of 16 bits, even bytes and odd ones: products of both fit, and their sums, too.
    const __m512i d = (__m512i)data, w = (__m512i)weights;
    const __m512i even = _mm512_madd_epi16(_mm512_and_si512(d, _mm512_set1_epi16(0xff)),
                                           _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(d, 8), _mm512_srai_epi16(w, 8));
    sum = (IntVector)_mm512_add_epi32((__m512i)sum, _mm512_add_epi32(even, odd));
#elif defined(__AVXVNNI__) && defined(__AVX2__)
    IntVector own = sum;
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(own) : "x"(data), "xm"(weights));
    sum = own;
#elif defined(__AVX2__)
    const __m256i d = (__m256i)data, w = (__m256i)weights;
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(d, _mm256_set1_epi16(0xff)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(d, 8), _mm256_srai_epi16(w, 8));
    sum = (IntVector)_mm256_add_epi32((__m256i)sum, _mm256_add_epi32(even, odd));
#elif defined(__ARM_FEATURE_MATMUL_INT8)
    sum = (IntVector)vusdotq_s32((int32x4_t)sum, (uint8x16_t)data, (int8x16_t)weights);
#elif defined(__ARM_FEATURE_DOTPROD)
    const int8x16_t codes = (int8x16_t)((BitVector)data ^ 0x80808080u);
    sum = (IntVector)vdotq_s32((int32x4_t)sum, codes, (int8x16_t)weights);
#else
    for (int part = 0; part < 4; ++part) {
      const IntVector code = (IntVector)((BitVector)data >> (8 * part) & 0xff);
      const IntVector weight = (IntVector)((BitVector)weights << (24 - 8 * part)) >> 24;
      sum += code * weight;
    }
#endif
  }
  static Vector value(IntVector sum) { return __builtin_convertvector(sum, Vector); }
  static std::int32_t code(float weight) {
    weight = weight > -128.0f ? weight : -128.0f;
    return static_cast<std::int32_t>(__builtin_rintf(weight < 127.0f ? weight : 127.0f));
  }
  static std::uint32_t word(const float* terms) {
    std::uint32_t word = 0;
    for (int part = 0; part < 4; ++part)
      word |= (static_cast<std::uint32_t>(code(terms[part])) & 0xff) << (8 * part);
    return word;
  }
};
)source";
}

}  // namespace syno::cpp
