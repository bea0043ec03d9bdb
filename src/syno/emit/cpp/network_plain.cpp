#include "syno/emit/cpp/network_text.h"

namespace syno::cpp {

std::string_view network_plain() {
  return R"source(
// --- what is no operator -------------------------------------------------------------------------
//
// Every function computes its team member's part for one image; callers wait between them.

namespace {

inline Vector greater(Vector a, Vector b) { return a > b || a != a ? a : b; }
inline float greater(float a, float b) { return a > b || a != a ? a : b; }

inline Vector lesser(Vector a, Vector b) { return a < b || a != a ? a : b; }
inline float lesser(float a, float b) { return a < b || a != a ? a : b; }
inline Vector truth(IntVector found) { return found ? splat(1.0f) : Vector{}; }

// A function of floats, one lane after the other.
template <class F, class... Vectors>
inline Vector lanes_of(const F& f, Vector v, const Vectors&... more) {
  for (long lane = 0; lane < kLanes; ++lane) v[lane] = f(v[lane], more[lane]...);
  return v;
}
inline Vector root_of(Vector v) {
#if defined(__AVX512F__)
  return (Vector)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX2__)
  return (Vector)_mm256_sqrt_ps((__m256)v);
#else
  return lanes_of([](float x) { return __builtin_sqrtf(x); }, v);
#endif
}

inline float sum_of(Vector v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)v);
#else
  float lanes[kLanes];
  store(lanes, v);
  for (long half = kLanes / 2; half > 0; half /= 2)
    for (long i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
#endif
}

// The first lanes, and zeros.
inline Vector first_lanes(Vector v, long count) {
#if defined(__AVX512F__)
  return (Vector)_mm512_maskz_mov_ps((__mmask16)(0xffffu >> (kLanes - count)), (__m512)v);
#else
  for (long lane = count; lane < kLanes; ++lane) v[lane] = 0;
  return v;
#endif
}

// body(place, count) of every vector of a row, the last of which may have fewer lanes.
template <class Body>
inline void along(long n, const Body& body) {
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, n - i);
}

// The value of f over n elements side by side, added up.
template <class F>
inline float sum_over(const float* x, long n, const F& f) {
  Vector a{}, b{};
  long i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a += f(load(x + i));
    b += f(load(x + i + kLanes));
  }
  along(n - i, [&](long j, long count) { a += first_lanes(f(load_part(x + i + j, 0, count)), count); });
  return sum_of(a + b);
}

template <class At>
inline Vector load_some(At from, long count) { return count >= kLanes ? load(from) : load_part(from, 0, count); }

// Tensors are read and written as float32 or as codes: `At` is const float* or Codes, `To` is float* or CodesOut.

inline const std::uint8_t* bytes_at(const float* at) { return reinterpret_cast<const std::uint8_t*>(at); }
inline std::uint8_t* bytes_at(float* at) { return reinterpret_cast<std::uint8_t*>(at); }

// An operand whose elements in a row have this distance.
template <long kDistance, class At = const float*>
struct From {
  At at;
  Vector read(long j, long count) const {
    if constexpr (kDistance == 0) return splat(at[0]);
    if constexpr (kDistance == 1) return load_some(at + j, count);
    return gather(count, [&](long lane) { return at[(j + lane) * kDistance]; });
  }
};

template <class To, class F, class... Operands>
inline void map_row(To y, long n, const F& f, const Operands&... x) {
  for (long j = 0; j < n; j += kLanes) {
    const long count = least(n - j, kLanes);
    store_part(y + j, f(x.read(j, count)...), count);
  }
}

// put(c, v) for the first columns of a square whose rows are get(0), get(1), ..., of which there are `rows`.
template <class Get, class Put>
inline void transpose(long rows, long columns, const Get& get, const Put& put) {
  Vector square[kLanes];
SYNO_UNROLL
  for (long i = 0; i < kLanes; ++i) square[i] = i < rows ? get(i) : Vector{};
  transpose(square);
SYNO_UNROLL
  for (long i = 0; i < kLanes; ++i)
    if (i < columns) put(i, square[i]);
}

// Operands of squares of at most kLanes rows and columns: rows at this distance, and matrices that are transposed.
template <long kDown, long kDistance, class At = const float*>
struct Across {
  At at;
  Vector row(long i, long count) const { return From<kDistance, At>{at + i * kDown}.read(0, count); }
};
template <long kColumn, class At = const float*>
struct Transposed {
  Vector rows[kLanes];
  Transposed(At at, long height, long width) {
    transpose(
        width, height, [&](long column) { return load_part(at + column * kColumn, 0, height); },
        [&](long i, Vector v) { rows[i] = v; });
  }
  Vector row(long i, long) const { return rows[i]; }
};

template <class To, class F, class... Operands>
inline void map_square(To y, long stride, long height, long width, const F& f, const Operands&... x) {
  for (long i = 0; i < height; ++i) store_part(y + i * stride, f(x.row(i, width)...), width);
}

// Elements at this distance; those between them are touched, too.
template <long kDistance>
inline Vector apart(const float* from) {
  if constexpr (kDistance == 1) return load(from);
#if defined(__AVX512F__)
  if constexpr (kDistance == 2) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return (Vector)_mm512_permutex2var_ps((__m512)load(from), even, (__m512)load(from + kLanes));
  }
#endif
  return gather(kLanes, [&](long lane) { return from[lane * kDistance]; });
}

// Windows of kernel kKh x kKw at distance kSh x kSw, over maps of kH x kW with kPh, kPw around them. kRow, kMap: the distances
// of rows and of maps in memory.
template <long kC, long kH, long kW, long kKh, long kKw, long kSh, long kSw, long kPh, long kPw, long kOh, long kOw,
          long kRow = kW, long kMap = kH * kW>
struct Windows {
  // A row of joined rows, and what whole vectors read behind it.
  static constexpr long kRead = (ceil_divide(kOw, kLanes) * kLanes - 1) * kSw + kKw;
  static constexpr long kRoom = (kRead > kW + kPw ? kRead : kW + kPw) + kLanes;
  // Rows are joined for each column, and then columns for each window.
  template <class Join, class End>
  static void run(const float* x, float* y, const Team& team, float outside, const Join& join, const End& end) {
    float row[kRoom];
    for (long j = 0; j < kRoom; ++j) row[j] = outside;
    for (long i = team.begin(kC * kOh); i < team.end(kC * kOh); ++i) {
      const long h = i % kOh, first = most(h * kSh - kPh, 0), last = least(h * kSh - kPh + kKh, kH);
      const float* const from = x + i / kOh * kMap;
      along(kW, [&](long j, long count) {
        Vector v = splat(outside);
        for (long r = first; r < last; ++r) v = join(load_some(from + r * kRow + j, count), v);
        store_part(row + kPw + j, v, count);
      });
      float* const to = y + i * kOw;
      along(kOw, [&](long o, long count) {
        Vector v = apart<kSw>(row + o * kSw);
SYNO_UNROLL
        for (long k = 1; k < kKw; ++k) v = join(apart<kSw>(row + o * kSw + k), v);
        end(to + o, v, h, o, count);
      });
    }
  }
};

template <class W>
inline void max_pool(const float* x, float* y, const Team& team) {
  W::run(x, y, team, -__builtin_inff(), [](Vector a, Vector b) { return greater(a, b); },
         [](float* to, Vector v, long, long, long count) { store_part(to, v, count); });
}

// Of codes, channels inside: the greatest code is that of the greatest number.
template <long kC, long kH, long kW, long kKh, long kKw, long kSh, long kSw, long kPh, long kPw, long kOh, long kOw>
inline void max_pool_codes(Windows<kC, kH, kW, kKh, kKw, kSh, kSw, kPh, kPw, kOh, kOw>, Codes x, CodesOut y,
                           const Team& team) {
  for (long i = team.begin(kOh * kOw); i < team.end(kOh * kOw); ++i) {
    const long h = i / kOw * kSh - kPh, w = i % kOw * kSw - kPw;
    std::uint8_t greatest[kC] = {};
    for (long r = most(h, 0); r < least(h + kKh, kH); ++r)
      for (long c = most(w, 0); c < least(w + kKw, kW); ++c) {
        const std::uint8_t* const from = x.at + (r * kW + c) * kC;
        for (long j = 0; j < kC; ++j) greatest[j] = from[j] > greatest[j] ? from[j] : greatest[j];
      }
    std::memcpy(y.at + i * kC, greatest, kC);
  }
}

// The channels of each pixel side by side, as four codes.
template <long kC>
inline void words_of_channels(const float* x, CodesOut y, long pixels, const Team& team) {
  const long blocks = ceil_divide(pixels, kLanes);
  for (long block = team.begin(blocks); block < team.end(blocks); ++block) {
    const long i = block * kLanes, count = least(pixels - i, kLanes);
    Vector v[4] = {};
    for (long c = 0; c < kC; ++c) v[c] = load_some(x + c * pixels + i, count);
    store_words(y + 4 * i, v[0], v[1], v[2], v[3], count);
  }
}

// divisor(h, w): what the sum of a window is divided by.
template <class W, class Divisor>
inline void average_pool(const float* x, float* y, const Team& team, const Divisor& divisor) {
  W::run(x, y, team, 0.0f, [](Vector a, Vector b) { return a + b; },
         [&](float* to, Vector v, long h, long w, long count) {
    float lanes[kLanes];
    store(lanes, v);
    for (long lane = 0; lane < count; ++lane) to[lane] = lanes[lane] / divisor(h, w + lane);
  });
}

inline ByteVector load_some_bytes(const std::uint8_t* from, long count) {
  if (count >= kLanes) return load_bytes(from);
  ByteVector bytes{};
  std::memcpy(&bytes, from, static_cast<std::size_t>(count));
  return bytes;
}

// Of codes, channels inside.
template <long kC, long kH, long kW, long kKh, long kKw, long kSh, long kSw, long kPh, long kPw, long kOh, long kOw,
          class Divisor>
inline void average_pool_codes(Windows<kC, kH, kW, kKh, kKw, kSh, kSw, kPh, kPw, kOh, kOw>, Codes x, CodesOut y,
                               const Team& team, const Divisor& divisor) {
  for (long i = team.begin(kOh * kOw); i < team.end(kOh * kOw); ++i) {
    const long h = i / kOw * kSh - kPh, w = i % kOw * kSw - kPw;
    const long top = most(h, 0), bottom = least(h + kKh, kH), left = most(w, 0), right = least(w + kKw, kW);
    const float zero = x.zero * static_cast<float>((bottom - top) * (right - left)), by = divisor(i / kOw, i % kOw);
    for (long c = 0; c < kC; c += kLanes) {
      const long count = least(kC - c, kLanes);
      IntVector sum{};
      for (long r = top; r < bottom; ++r)
        for (long column = left; column < right; ++column)
          sum += widened(load_some_bytes(x.at + (r * kW + column) * kC + c, count));
      const Vector total = (__builtin_convertvector(sum, Vector) - splat(zero)) * splat(x.scale);
      store_part(y + (i * kC + c), total / splat(by), count);
    }
  }
}

// How many positions of a window lie below `size`, and not before `least_place`.
inline float covered(long o, long stride, long padding, long kernel, long first_place, long size) {
  const long begin = o * stride - padding;
  return static_cast<float>(least(begin + kernel, size) - most(begin, first_place));
}

// f(from, top, bottom, left, right): the value of a window; a dimension has `out` windows, which may overlap.
template <class F>
inline void adaptive_pool(const float* x, float* y, long channels, long height, long width, long out_height,
                          long out_width, const Team& team, const F& f) {
  const long work = channels * out_height;
  for (long i = team.begin(work); i < team.end(work); ++i) {
    const long h = i % out_height, top = h * height / out_height;
    const long bottom = ceil_divide((h + 1) * height, out_height);
    const float* const from = x + i / out_height * (height * width);
    for (long w = 0; w < out_width; ++w)
      y[i * out_width + w] =
          f(from, top, bottom, w * width / out_width, ceil_divide((w + 1) * width, out_width));
  }
}

inline void adaptive_average_pool(const float* x, float* y, long channels, long height, long width, long out_height,
                                  long out_width, const Team& team) {
  adaptive_pool(x, y, channels, height, width, out_height, out_width, team,
                [&](const float* from, long top, long bottom, long left, long right) {
    float sum = 0;
    if (right - left == width) {
      sum = sum_over(from + top * width, (bottom - top) * width, [](Vector v) { return v; });
    } else {
      for (long r = top; r < bottom; ++r)
        for (long j = left; j < right; ++j) sum += from[r * width + j];
    }
    return sum / static_cast<float>((bottom - top) * (right - left));
  });
}

inline void adaptive_max_pool(const float* x, float* y, long channels, long height, long width, long out_height,
                              long out_width, const Team& team) {
  adaptive_pool(x, y, channels, height, width, out_height, out_width, team,
                [&](const float* from, long top, long bottom, long left, long right) {
    float found = -__builtin_inff();
    for (long r = top; r < bottom; ++r)
      for (long j = left; j < right; ++j) found = greater(from[r * width + j], found);
    return found;
  });
}

// The mean of each channel of a map with channels inside: of whole vectors, and of channels one by one.
inline Vector mean_of_vectors(const float* x, long distance, long pixels) {
  Vector sum{};
  for (long p = 0; p < pixels; ++p) sum += load(x + p * distance);
  return sum / splat(static_cast<float>(pixels));
}
inline Vector mean_of_vectors(Codes x, long distance, long pixels) {
  IntVector sum{};
  for (long p = 0; p < pixels; ++p) sum += widened(load_bytes(x.at + p * distance));
  const Vector mean = __builtin_convertvector(sum, Vector) / splat(static_cast<float>(pixels));
  return (mean - splat(x.zero)) * splat(x.scale);
}
template <long kC, class At>
inline void mean_of_pixels(At x, float* y, long pixels, const Team& team) {
  constexpr long blocks = ceil_divide(kC, kLanes);
  for (long block = team.begin(blocks); block < team.end(blocks); ++block) {
    const long c = block * kLanes;
    if (c + kLanes <= kC) {
      store(y + c, mean_of_vectors(x + c, kC, pixels));
      continue;
    }
    Vector sum{};
    for (long p = 0; p < pixels; ++p) sum += load_some(x + (p * kC + c), kC - c);
    store_part(y + c, sum / splat(static_cast<float>(pixels)), kC - c);
  }
}

// A function of each row of `length`.
template <class F>
inline void reduce_rows(const float* x, float* y, long rows, long length, const Team& team, const F& f) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) y[i] = f(x + i * length, length);
}

inline float sum_of(const float* row, long n) {
  return sum_over(row, n, [](Vector v) { return v; });
}
inline float mean_of(const float* row, long n) { return sum_of(row, n) / static_cast<float>(n); }
// correction: by how much the divisor is less than the number of elements.
inline float variance_of(const float* row, long n, float correction) {
  const Vector middle = splat(mean_of(row, n));
  const float square = sum_over(row, n, [&](Vector v) { return (v - middle) * (v - middle); });
  const float divisor = static_cast<float>(n) - correction;
  return square / (divisor > 0 ? divisor : 0.0f);
}

// f of the elements of a row that is not empty, joined two by two; an element may be joined twice.
template <class F, class Join>
inline float joined(const float* row, long n, const F& f, const Join& join) {
  Vector found = f(load_part(row, 0, n));
  if (n < kLanes) found = first_lanes(splat(1.0f), n) > Vector{} ? found : f(splat(row[0]));
  for (long i = kLanes; i < n; i += kLanes) found = join(f(load(row + least(i, n - kLanes))), found);
  float lanes[kLanes];
  store(lanes, found);
  for (long half = kLanes / 2; half > 0; half /= 2)
    for (long i = 0; i < half; ++i) lanes[i] = join(lanes[i + half], lanes[i]);
  return lanes[0];
}
inline float greatest_of(const float* row, long n) {
  return joined(row, n, [](Vector v) { return v; }, [](auto a, auto b) { return greater(a, b); });
}
inline float least_of(const float* row, long n) {
  return joined(row, n, [](Vector v) { return v; }, [](auto a, auto b) { return lesser(a, b); });
}
inline float greatest_size_of(const float* row, long n) {
  return joined(row, n, [](Vector v) { return magnitude(v); }, [](auto a, auto b) { return greater(a, b); });
}

// The mean of each row, and after all of them the sum of the squared distances from it.
inline void moments(const float* x, float* y, long rows, long length, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) {
    const float* const row = x + i * length;
    y[i] = mean_of(row, length);
    const Vector middle = splat(y[i]);
    y[rows + i] = sum_over(row, length, [&](Vector v) { return (v - middle) * (v - middle); });
  }
}

// Channels of `length`, normalized over `group` of them side by side, by the known moments of each. weight and bias, which
// may be null, have values for `channels`, and then for the next sample's.
inline void group_norm(const float* x, const float* known, const float* weight, const float* bias, float* y, long rows,
                       long channels, long group, long length, float epsilon, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) {
    const float* const own = known + i / group * group;
    const float middle = mean_of(own, group);
    const float apart = sum_over(own, group, [&](Vector v) { return (v - splat(middle)) * (v - splat(middle)); });
    const float square = (sum_of(own + rows, group) / static_cast<float>(length) + apart) / static_cast<float>(group);
    const float factor = (weight ? weight[i % channels] : 1.0f) / __builtin_sqrtf(square + epsilon);
    const Vector scale = splat(factor), shift = splat(bias ? bias[i % channels] : 0.0f), center = splat(middle);
    along(length, [&](long j, long count) {
      store_part(y + i * length + j, (load_part(x + i * length + j, 0, count) - center) * scale + shift, count);
    });
  }
}

// weight and bias may be null. kCentered: whether the mean is taken off.
template <bool kCentered = true>
inline void layer_norm(const float* x, const float* weight, const float* bias, float* y, long rows, long length,
                       float epsilon, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) {
    const float* const from = x + i * length;
    float* const to = y + i * length;
    const Vector middle = splat(kCentered ? mean_of(from, length) : 0.0f);
    const float square = sum_over(from, length, [&](Vector v) { return (v - middle) * (v - middle); });
    const Vector factor = splat(1.0f / __builtin_sqrtf(square / static_cast<float>(length) + epsilon));
    along(length, [&](long j, long count) {
      Vector v = (load_part(from + j, 0, count) - middle) * factor;
      if (weight) v *= load_part(weight + j, 0, count);
      if (bias) v += load_part(bias + j, 0, count);
      store_part(to + j, v, count);
    });
  }
}

inline void softmax(const float* x, float* y, long rows, long length, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) {
    const float* const from = x + i * length;
    float* const to = y + i * length;
    const Vector top = splat(greatest_of(from, length));
    Vector sum{};
    along(length, [&](long j, long count) {
      const Vector v = first_lanes(exp_of(load_part(from + j, 0, count) - top), count);
      store_part(to + j, v, count);
      sum += v;
    });
    const Vector factor = splat(1.0f / sum_of(sum));
    along(length, [&](long j, long count) { store_part(to + j, load_part(to + j, 0, count) * factor, count); });
  }
}

inline void log_softmax(const float* x, float* y, long rows, long length, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) {
    const float* const from = x + i * length;
    const Vector top = splat(greatest_of(from, length));
    const float sum = sum_over(from, length, [&](Vector v) { return exp_of(v - top); });
    const Vector shift = top + splat(__builtin_logf(sum));
    along(length, [&](long j, long count) {
      store_part(y + i * length + j, load_part(from + j, 0, count) - shift, count);
    });
  }
}

// Elements of the rows and columns that tables name.
inline void nearest(const float* x, float* y, long maps, long height, long width, long out_height, long out_width,
                    const int* row, const int* column, const Team& team) {
  for (long i = team.begin(maps * out_height); i < team.end(maps * out_height); ++i) {
    const float* const from = x + (i / out_height * height + row[i % out_height]) * width;
    for (long j = 0; j < out_width; ++j) y[i * out_width + j] = from[column[j]];
  }
}

// Elements `first` and `last` of a row or column, and their weights.
struct Taps {
  long first, last;
  float at_first, at_last;
};

inline void interpolate(const float* x, float* y, long maps, long height, long width, long out_height, long out_width,
                        const Taps* row, const Taps* column, const Team& team) {
  for (long i = team.begin(maps * out_height); i < team.end(maps * out_height); ++i) {
    const Taps taps = row[i % out_height];
    const float* const from = x + i / out_height * (height * width);
    const float *const upper = from + taps.first * width, *const lower = from + taps.last * width;
    float* const to = y + i * out_width;
    for (long j = 0; j < out_width; ++j) {
      const auto [first, last, at_first, at_last] = column[j];
      to[j] = taps.at_first * (at_first * upper[first] + at_last * upper[last]) +
              taps.at_last * (at_first * lower[first] + at_last * lower[last]);
    }
  }
}

// Rows of the table, by the ids.
template <long kWidth>
inline void embedding(const float* table, const std::int64_t* ids, float* y, long count, const Team& team) {
  for (long i = team.begin(count); i < team.end(count); ++i)
    std::memcpy(y + i * kWidth, table + ids[i] * kWidth, kWidth * sizeof(float));
}

}  // namespace
)source";
}

}  // namespace syno::cpp
