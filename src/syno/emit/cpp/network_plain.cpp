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
  float lanes[kLanes], sum = 0;
  store(lanes, v);
  for (long i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
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
  for (; i + kLanes <= n; i += kLanes) a += f(load(x + i));
  float sum = sum_of(a + b);
  for (; i < n; ++i) sum += f(splat(x[i]))[0];
  return sum;
}

// An operand whose elements in a row have this distance.
template <long kDistance>
struct From {
  const float* at;
  Vector read(long j, long count) const {
    if constexpr (kDistance == 0) return splat(*at);
    if constexpr (kDistance == 1) return count >= kLanes ? load(at + j) : load_part(at + j, 0, count);
    return gather(count, [&](long lane) { return at[(j + lane) * kDistance]; });
  }
};

template <class F, class... Operands>
inline void map_row(float* y, long n, const F& f, const Operands&... x) {
  for (long j = 0; j < n; j += kLanes) {
    const long count = least(n - j, kLanes);
    store_part(y + j, f(x.read(j, count)...), count);
  }
}

// Windows of kernel kKh x kKw at distance kSh x kSw, over maps of kH x kW with kPh, kPw around them.
template <long kC, long kH, long kW, long kKh, long kKw, long kSh, long kSw, long kPh, long kPw, long kOh, long kOw>
struct Windows {
  static constexpr long kRoom = (kOw - 1) * kSw + kKw > kW + kPw ? (kOw - 1) * kSw + kKw : kW + kPw;
  template <class Join, class End>
  static void run(const float* x, float* y, const Team& team, float outside, const Join& join, const End& end) {
    float row[kRoom];
    for (long j = 0; j < kRoom; ++j) row[j] = outside;
    for (long i = team.begin(kC * kOh); i < team.end(kC * kOh); ++i) {
      const long h = i % kOh, first = most(h * kSh - kPh, 0), last = least(h * kSh - kPh + kKh, kH);
      const float* const from = x + i / kOh * (kH * kW);
      for (long j = 0; j < kW; ++j) row[kPw + j] = outside;
      for (long r = first; r < last; ++r)
        for (long j = 0; j < kW; ++j) row[kPw + j] = join(from[r * kW + j], row[kPw + j]);
      float* const to = y + i * kOw;
      for (long o = 0; o < kOw; ++o) {
        float found = row[o * kSw];
        for (long k = 1; k < kKw; ++k) found = join(row[o * kSw + k], found);
        to[o] = end(found, h, o);
      }
    }
  }
};

template <class W>
inline void max_pool(const float* x, float* y, const Team& team) {
  W::run(x, y, team, -__builtin_inff(), [](float a, float b) { return greater(a, b); },
         [](float v, long, long) { return v; });
}

// divisor(h, w): what the sum of a window is divided by.
template <class W, class Divisor>
inline void average_pool(const float* x, float* y, const Team& team, const Divisor& divisor) {
  W::run(x, y, team, 0.0f, [](float a, float b) { return a + b; },
         [&](float v, long h, long w) { return v / divisor(h, w); });
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

// The lanes and elements of a row, joined two by two; the row is not empty.
template <class Join>
inline float joined(const float* row, long n, const Join& join) {
  float found = row[0];
  long i = 0;
  if (n >= kLanes) {
    Vector best = load(row);
    for (i = kLanes; i + kLanes <= n; i += kLanes) best = join(load(row + i), best);
    found = best[0];
    for (long lane = 1; lane < kLanes; ++lane) found = join(splat(best[lane]), splat(found))[0];
  }
  for (; i < n; ++i) found = join(splat(row[i]), splat(found))[0];
  return found;
}
inline float greatest_of(const float* row, long n) {
  return joined(row, n, [](Vector a, Vector b) { return greater(a, b); });
}
inline float least_of(const float* row, long n) {
  return joined(row, n, [](Vector a, Vector b) { return lesser(a, b); });
}
inline float greatest_size_of(const float* row, long n) {
  const float found = joined(row, n, [](Vector a, Vector b) { return greater(magnitude(a), magnitude(b)); });
  return found < 0 ? -found : found;
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
    for (long j = 0; j < length; j += kLanes) {
      const long count = least(length - j, kLanes);
      Vector v = (load_part(from + j, 0, count) - middle) * factor;
      if (weight) v *= load_part(weight + j, 0, count);
      if (bias) v += load_part(bias + j, 0, count);
      store_part(to + j, v, count);
    }
  }
}

// exp(x - greatest) / sum of a row, in place of it. kMasked: it is zero where nothing is above -infinity.
template <bool kMasked = false>
inline void softmax_of(const float* from, float* to, long length) {
  float top = -__builtin_inff();
  for (long j = 0; j < length; ++j) top = greater(from[j], top);
  if (kMasked && top == -__builtin_inff()) {
    for (long j = 0; j < length; ++j) to[j] = 0;
    return;
  }
  const Vector high = splat(top);
  float sum = 0;
  for (long j = 0; j < length; j += kLanes) {
    const long count = least(length - j, kLanes);
    const Vector v = exp_of(load_part(from + j, 0, count) - high);
    store_part(to + j, v, count);
    for (long lane = 0; lane < count; ++lane) sum += v[lane];
  }
  const Vector factor = splat(1.0f / sum);
  for (long j = 0; j < length; j += kLanes) {
    const long count = least(length - j, kLanes);
    store_part(to + j, load_part(to + j, 0, count) * factor, count);
  }
}

inline void softmax(const float* x, float* y, long rows, long length, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) softmax_of(x + i * length, y + i * length, length);
}

inline void log_softmax(const float* x, float* y, long rows, long length, const Team& team) {
  for (long i = team.begin(rows); i < team.end(rows); ++i) {
    const float* const from = x + i * length;
    const Vector top = splat(greatest_of(from, length));
    const float sum = sum_over(from, length, [&](Vector v) { return exp_of(v - top); });
    const Vector shift = top + splat(__builtin_logf(sum));
    for (long j = 0; j < length; j += kLanes) {
      const long count = least(length - j, kLanes);
      store_part(y + i * length + j, load_part(from + j, 0, count) - shift, count);
    }
  }
}

// y[h, l] = sum(s) softmax(scale * q[h, l] . k[h, s] + mask) * v[h, s]; elements of a row side by side. The mask, which may
// be null, has a row for each h and l.
template <long kL, long kS, long kE, long kEv, bool kCausal>
inline void attention(const float* q, const float* k, const float* v, const float* mask, float* y, long heads,
                      const long (&q_distance)[2], const long (&k_distance)[2], const long (&v_distance)[2],
                      const long (&mask_distance)[2], const long (&y_distance)[2], float scale, const Team& team) {
  float scores[kS];
  for (long i = team.begin(heads * kL); i < team.end(heads * kL); ++i) {
    const long head = i / kL, l = i % kL, last = kCausal ? least(l + 1, kS) : kS;
    const float* const row = q + head * q_distance[0] + l * q_distance[1];
    const float* const added = mask ? mask + head * mask_distance[0] + l * mask_distance[1] : nullptr;
    for (long s = 0; s < last; ++s) {
      const float* const key = k + head * k_distance[0] + s * k_distance[1];
      Vector sum{};
      for (long e = 0; e < kE; e += kLanes) {
        const long count = least(kE - e, kLanes);
        sum += load_part(row + e, 0, count) * load_part(key + e, 0, count);
      }
      scores[s] = sum_of(sum) * scale + (added ? added[s] : 0.0f);
    }
    softmax_of<true>(scores, scores, last);
    for (long e = 0; e < kEv; e += kLanes) {
      const long count = least(kEv - e, kLanes);
      Vector sum{};
      for (long s = 0; s < last; ++s)
        sum += splat(scores[s]) * load_part(v + head * v_distance[0] + s * v_distance[1] + e, 0, count);
      store_part(y + head * y_distance[0] + l * y_distance[1] + e, sum, count);
    }
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

// y[n] = a[n] . b[n], matrices of kRows x kTerms and kTerms x kColumns.
template <long kRows, long kTerms, long kColumns>
inline void product(const float* a, const float* b, float* y, long count, const Team& team) {
  constexpr long kWide = 4 * kLanes;
  for (long i = team.begin(count * kRows); i < team.end(count * kRows); ++i) {
    const float *const row = a + i * kTerms, *const from = b + i / kRows * (kTerms * kColumns);
    for (long j = 0; j < kColumns; j += kWide) {
      Vector sums[4] = {};
      for (long k = 0; k < kTerms; ++k) {
        const Vector factor = splat(row[k]);
        const float* const at = from + k * kColumns + j;
        for (long v = 0; v < 4; ++v)
          if (j + v * kLanes < kColumns) sums[v] += factor * load_part(at + v * kLanes, 0, least(kColumns - j - v * kLanes, kLanes));
      }
      for (long v = 0; v < 4; ++v)
        if (j + v * kLanes < kColumns)
          store_part(y + i * kColumns + j + v * kLanes, sums[v], least(kColumns - j - v * kLanes, kLanes));
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
