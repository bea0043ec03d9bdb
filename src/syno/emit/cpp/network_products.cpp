#include "syno/emit/cpp/network_text.h"

namespace syno::cpp {

std::string_view network_products() {
  return R"source(
// --- products of what the network computes -------------------------------------------------------
//
// Scalars of one factor meet vectors of the other in a tile of sums in registers. The vectors lie side by side, in memory
// that the first cache holds; the scalars are read where they are. A result does not depend on the size of the team.

namespace {

// The size of each part, when n is cut into equal ones of at most `most`.
constexpr long balanced(long n, long most) { return ceil_divide(n, ceil_divide(n, most)); }
// How many scalars meet so many vectors at once.
constexpr long scalars_of_tile(long vectors) {
  const long fit = kRegisters * 3 / 4 / vectors;
  return fit < 12 ? fit : 12;
}

// Matrices with these strides.
template <long kMatrix, long kRow, long kColumn = 1>
struct Matrices {
  const float* at;
  static constexpr long kRowStride = kRow, kColumnStride = kColumn;
  const float* of(long matrix, long row = 0) const { return at + matrix * kMatrix + row * kRow; }
};

// So many of them again and again.
template <long kCount, class M>
struct Repeated {
  const float* at;
  const float* of(long matrix, long row) const { return M{at}.of(matrix % kCount, row); }
};
struct NoMask {};
// Rows of so many heads, and then of those of the next group.
template <class Float, long kCount, long kGroup, long kHead, long kRow>
struct Heads {
  Float* at;
  static constexpr long kRowStride = kRow;
  Float* of(long head, long row) const { return at + head / kCount * kGroup + head % kCount * kHead + row * kRow; }
};

// Vectors of a row of `length` in parts of at most `most`, which are balanced.
template <long kLength, long kMost>
struct Strips {
  static constexpr long kVectors = ceil_divide(kLength, kLanes);
  static constexpr long kCount = ceil_divide(kVectors, kMost);
  static constexpr int kNarrow = kVectors / kCount, kWide = ceil_divide(kVectors, kCount);
  // body(its number of vectors as a type, its first element)
  template <class Body>
  static void of(long strip, const Body& body) {
    const long begin = kVectors * strip / kCount, end = kVectors * (strip + 1) / kCount;
    if (end - begin == kWide) body(std::integral_constant<int, kWide>(), begin * kLanes);
    else body(std::integral_constant<int, kNarrow>(), begin * kLanes);
  }
};

// body(the number of rows of a tile as a type, its first row) for rows [first, last), where a tile has kTile rows and the
// last of all kRows rows may be in a smaller one.
template <long kTile, long kRows, class Body>
inline void for_tiles(long first, long last, const Body& body) {
  long row = first;
  for (; row < last && row + kTile <= kRows; row += kTile) body(std::integral_constant<int, kTile>(), row);
  if constexpr (kRows % kTile != 0)
    if (row < last) body(std::integral_constant<int, kRows % kTile>(), row);
}

// A tile of sums: M scalars by N vectors.
template <int M, int N>
struct Tile {
  Vector sums[M][N] = {};

  // f(sum, i, j) of every sum
  template <class F>
  void each(const F& f) {
SYNO_UNROLL
    for (int i = 0; i < M; ++i)
SYNO_UNROLL
      for (int j = 0; j < N; ++j) f(sums[i][j], i, j);
  }
  // sums[i][j] += scalars[i * kScalar + k * kTerm] * vectors[k * N + j] over the terms k
  template <long kScalar, long kTerm>
  void add(const float* scalars, const float* vectors, long terms) {
    for (long k = 0; k < terms; ++k, scalars += kTerm, vectors += N * kLanes) {
      Vector v[N];
SYNO_UNROLL
      for (int j = 0; j < N; ++j) {
        v[j] = load(vectors + j * kLanes);
        SYNO_HOLD(v[j]);
      }
SYNO_UNROLL
      for (int i = 0; i < M; ++i) {
        const Vector scalar = splat(scalars[i * kScalar]);
SYNO_UNROLL
        for (int j = 0; j < N; ++j) sums[i][j] += scalar * v[j];
      }
    }
  }
};

// y[n] = a[n] . b[n], matrices of kRows x kTerms and kTerms x kColumns, one after the other in y. Elements of a row or of a
// column of b are side by side.
template <long kRows, long kTerms, long kColumns, class A, class B>
inline void product(const A& a, const B& b, float* y, long count, const Team& team) {
  using Parts = Strips<kColumns, kVectors>;
  constexpr long kRoom = 8192;  // floats of a strip of b
  constexpr long kTile = balanced(kRows, scalars_of_tile(Parts::kWide));
  constexpr long kPart = ceil_divide(64, kTile) * kTile, kParts = ceil_divide(kRows, kPart);
  const long work = count * Parts::kCount * kParts;
  for (long i = team.begin(work); i < team.end(work); ++i) {
    const long matrix = i / kParts / Parts::kCount, first = i % kParts * kPart, last = least(first + kPart, kRows);
    Parts::of(i / kParts % Parts::kCount, [&](auto vectors, long column) {
      constexpr int N = decltype(vectors)::value;
      constexpr long kDeep = balanced(kTerms, kRoom / (N * kLanes));
      alignas(64) float strip[kDeep * N * kLanes];
      for (long k = 0; k < kTerms; k += kDeep) {
        const long terms = least(kDeep, kTerms - k);
        for (int j = 0; j < N; ++j) {
          const long c = column + j * kLanes;
          if constexpr (B::kColumnStride == 1) {
            for (long t = 0; t < terms; ++t)
              store(strip + (t * N + j) * kLanes, load_part(b.of(matrix, k + t) + c, 0, kColumns - c));
          } else {
            for (long t = 0; t < terms; t += kLanes)
              transpose(
                  kColumns - c, terms - t,
                  [&](long i) { return load_part(b.of(matrix) + (c + i) * B::kColumnStride + k + t, 0, terms - t); },
                  [&](long i, Vector v) { store(strip + ((t + i) * N + j) * kLanes, v); });
          }
        }
        for_tiles<kTile, kRows>(first, last, [&](auto rows, long row) {
          constexpr int M = decltype(rows)::value;
          Tile<M, N> found;
          float* const to = y + (matrix * kRows + row) * kColumns + column;
          const auto rest = [&](int j) { return kColumns - column - j * kLanes; };
          if (k > 0)
            found.each([&](Vector& sum, int m, int j) { sum = load_part(to + m * kColumns + j * kLanes, 0, rest(j)); });
          found.template add<A::kRowStride, A::kColumnStride>(a.of(matrix, row) + k * A::kColumnStride, strip, terms);
          found.each([&](Vector& sum, int m, int j) { store_part(to + m * kColumns + j * kLanes, sum, rest(j)); });
        });
      }
    });
  }
}

// y[h, l] = sum(s) softmax(scale * q[h, l] . k[h / kGroup, s] + mask[h, l]) * v[h / kGroup, s].
//
// The lanes of vectors are rows l, so that a row's maximum and sum are never searched across lanes. For a block of rows,
// blocks of keys are added one after the other; where the greatest score of a row grows, its sums decay. Where there are few
// rows, most lanes would be empty: then lanes are numbers of a query, a key or a value.
template <long kL, long kS, long kE, long kEv, long kGroup, bool kCausal>
struct Attention {
  static constexpr long kFit = 8192 / ((kE + kEv) * kLanes);  // vectors of rows whose queries and results stay close
  using Blocks = Strips<kL, kFit < 1 ? 1 : kFit < kVectors ? kFit : kVectors>;

  template <class Q, class K, class V, class Mask, class Y>
  static void run(const Q& q, const K& k, const V& v, const Mask& mask, const Y& y, long heads, float scale,
                  const Team& team) {
    if constexpr (4 * kL <= kLanes) {
      const long work = heads * kL;
      for (long i = team.begin(work); i < team.end(work); ++i) single(q, k, v, mask, y, i / kL, i % kL, scale);
    } else {
      const long work = heads * Blocks::kCount;
      for (long i = team.begin(work); i < team.end(work); ++i) {
        const long head = i / Blocks::kCount;
        Blocks::of(i % Blocks::kCount, [&](auto vectors, long row) {
          block<decltype(vectors)::value>(q, k, v, mask, y, head, row, scale);
        });
      }
    }
  }

  template <class Q, class K, class V, class Mask, class Y>
  static void single(const Q& q, const K& k, const V& v, const Mask& mask, const Y& y, long head, long row, float scale) {
    constexpr long kKeys = 256, kQuery = ceil_divide(kE, kLanes), kValue = ceil_divide(kEv, kLanes);
    const Vector lane = gather(kLanes, [](long i) { return static_cast<float>(i); });
    const Vector nothing = splat(-__builtin_inff());
    alignas(64) float scores[kKeys];
    Vector query[kQuery], sums[kValue] = {};
    for (long e = 0; e < kQuery; ++e)
      query[e] = load_part(q.of(head, row) + e * kLanes, 0, kE - e * kLanes) * splat(scale);
    float top = -__builtin_inff(), total = 0;
    const long last = kCausal ? least(kS, row + 1) : kS;
    for (long first = 0; first < last; first += kKeys) {
      const long count = least(kKeys, last - first);
      Vector greatest = splat(top);
      for (long s = 0; s < count; s += kLanes) {
        Vector score{};
        transpose(
            count - s, kLanes,
            [&](long i) {
              const float* const key = k.of(head / kGroup, first + s + i);
              Vector sum{};
              for (long e = 0; e < kQuery; ++e) sum += query[e] * load_part(key + e * kLanes, 0, kE - e * kLanes);
              return sum;
            },
            [&](long, Vector part) { score += part; });
        if constexpr (!std::is_same_v<Mask, NoMask>) score += load_part(mask.of(head, row) + first + s, 0, count - s);
        score = splat(static_cast<float>(count - s)) > lane ? score : nothing;
        greatest = score > greatest ? score : greatest;
        store(scores + s, score);
      }
      const float former = top;
      for (long i = 0; i < kLanes; ++i) top = greatest[i] > top ? greatest[i] : top;
      const float shift = top == -__builtin_inff() ? 0.0f : top;
      const float decay = exp_of(splat(former - shift))[0];
      Vector shares{};
      for (long s = 0; s < count; s += kLanes) {
        const Vector share = exp_of(load(scores + s) - splat(shift));
        shares += share;
        store(scores + s, share);
      }
      total = total * decay + sum_of(shares);
      for (long j = 0; j < kValue; ++j) sums[j] *= splat(decay);
      for (long s = 0; s < count; ++s) {
        const float* const value = v.of(head / kGroup, first + s);
        for (long j = 0; j < kValue; ++j)
          sums[j] += splat(scores[s]) * load_part(value + j * kLanes, 0, kEv - j * kLanes);
      }
    }
    const Vector factor = splat(total == 0 ? 0.0f : 1 / total);
    for (long j = 0; j < kValue; ++j)
      store_part(y.of(head, row) + j * kLanes, sums[j] * factor, kEv - j * kLanes);
  }

  template <int N, class Q, class K, class V, class Mask, class Y>
  static void block(const Q& q, const K& k, const V& v, const Mask& mask, const Y& y, long head, long row, float scale) {
    constexpr long kWidth = N * kLanes, kMost = scalars_of_tile(N);
    constexpr long kKeysOfTile = balanced(kS, kMost), kValuesOfTile = balanced(kEv, kMost);
    constexpr long kKeys = ceil_divide(balanced(kS, 4096 / kWidth), kKeysOfTile) * kKeysOfTile;
    alignas(64) float queries[kE * kWidth], scores[kKeys * kWidth], sums[kEv * kWidth] = {};
    const long rows = least(kL - row, kWidth), last = kCausal ? least(kS, row + rows) : kS;
    for (long j = 0; j < N; ++j)
      for (long e = 0; e < kE; e += kLanes)
        transpose(
            rows - j * kLanes, kE - e,
            [&](long i) { return load_part(q.of(head, row + j * kLanes + i) + e, 0, kE - e); },
            [&](long i, Vector of) { store(queries + ((e + i) * N + j) * kLanes, of * splat(scale)); });
    const Vector nothing = splat(-__builtin_inff());
    Vector top[N], total[N], decay[N];
    for (int j = 0; j < N; ++j) {
      top[j] = nothing;
      total[j] = Vector{};
    }
    for (long first = 0; first < last; first += kKeys) {
      const long count = least(kKeys, last - first);
      for_tiles<kKeysOfTile, kS>(first, first + count, [&](auto keys, long key) {
        constexpr int M = decltype(keys)::value;
        Tile<M, N> found;
        found.template add<K::kRowStride, 1>(k.of(head / kGroup, key), queries, kE);
        float* const to = scores + (key - first) * kWidth;
        found.each([&](Vector& sum, int i, int j) { store(to + (i * N + j) * kLanes, sum); });
      });
      if constexpr (!std::is_same_v<Mask, NoMask>) add_mask<N>(mask, head, row, rows, first, count, scores);
      if constexpr (kCausal) hide_later_keys<N>(row, first, count, scores);
      soften<N>(scores, count, top, total, decay);
      for_tiles<kValuesOfTile, kEv>(0, kEv, [&](auto values, long e) {
        constexpr int M = decltype(values)::value;
        Tile<M, N> found;
        float* const to = sums + e * kWidth;
        found.each([&](Vector& sum, int i, int j) { sum = load(to + (i * N + j) * kLanes) * decay[j]; });
        found.template add<1, V::kRowStride>(v.of(head / kGroup, first) + e, scores, count);
        found.each([&](Vector& sum, int i, int j) { store(to + (i * N + j) * kLanes, sum); });
      });
    }
    for (long j = 0; j < N; ++j) {
      const Vector factor = total[j] == Vector{} ? Vector{} : splat(1.0f) / total[j];
      for (long e = 0; e < kEv; e += kLanes)
        transpose(
            kEv - e, rows - j * kLanes, [&](long i) { return load(sums + ((e + i) * N + j) * kLanes) * factor; },
            [&](long i, Vector of) { store_part(y.of(head, row + j * kLanes + i) + e, of, kEv - e); });
    }
  }

  template <int N, class Mask>
  static void add_mask(const Mask& mask, long head, long row, long rows, long first, long count, float* scores) {
    for (long j = 0; j < N; ++j)
      for (long s = 0; s < count; s += kLanes)
        transpose(
            rows - j * kLanes, count - s,
            [&](long i) { return load_part(mask.of(head, row + j * kLanes + i) + first + s, 0, count - s); },
            [&](long i, Vector of) {
              float* const at = scores + ((s + i) * N + j) * kLanes;
              store(at, load(at) + of);
            });
  }

  // Scores of keys that come after the row are those of nothing.
  template <int N>
  static void hide_later_keys(long row, long first, long count, float* scores) {
    const Vector lane = gather(kLanes, [](long i) { return static_cast<float>(i); });
    for (long s = most(0, row - first); s < count; ++s)
      for (long j = 0; j < N; ++j) {
        float* const at = scores + (s * N + j) * kLanes;
        const Vector behind = splat(static_cast<float>(first + s - row - j * kLanes));
        store(at, behind > lane ? splat(-__builtin_inff()) : load(at));
      }
  }

  // exp(score - top) in place of the scores. decay: of what was summed with the former top.
  template <int N>
  static void soften(float* scores, long count, Vector (&top)[N], Vector (&total)[N], Vector (&decay)[N]) {
    Vector shift[N];
    for (int j = 0; j < N; ++j) shift[j] = top[j];
    for (long s = 0; s < count; ++s)
SYNO_UNROLL
      for (int j = 0; j < N; ++j) {
        const Vector score = load(scores + (s * N + j) * kLanes);
        shift[j] = score > shift[j] ? score : shift[j];
      }
SYNO_UNROLL
    for (int j = 0; j < N; ++j) {
      const Vector former = top[j];
      top[j] = shift[j];
      // Of a row that is masked as a whole, so far, all are exp(-infinity).
      shift[j] = top[j] == splat(-__builtin_inff()) ? Vector{} : top[j];
      decay[j] = exp_of(former - shift[j]);
      total[j] *= decay[j];
    }
    for (long s = 0; s < count; ++s)
SYNO_UNROLL
      for (int j = 0; j < N; ++j) {
        float* const at = scores + (s * N + j) * kLanes;
        const Vector share = exp_of(load(at) - shift[j]);
        store(at, share);
        total[j] += share;
      }
  }
};

}  // namespace
)source";
}

}  // namespace syno::cpp
