#include "syno/emit/cpp/runtime.h"

namespace syno::cpp {

std::string_view contractions_runtime_text() {
  return R"source(
// --- contractions --------------------------------------------------------------------------------
//
// C is a struct that describes one:  y[row][column] = sum over terms k and taps t of weight * data
//   kGroups, kRows, kColumns, kTerms, kTaps     extents; each group has weights of its own
//   Words                                       what is multiplied: Floats, Pairs or Quads
//   kPoint                                      data of column n of a line stands at n * kPoint
//   kLine, kLineStep                            columns of a line, and data between neighbouring lines
//   term(k), tap(t)                             places in the data
//   row(m), column(n)                           places in the result
//   weight(w, group, m, k, t)                   an element of the weight
//   kRowRun                                     neighbouring rows that are side by side in the result
//   kScaled                                     whether sums are multiplied with the scale of the data
//   kChannelOfRow                               all columns of a row have one channel of the epilogue
//   kPairWidth, kPairRows                       see pair_tile; 0 for contractions without pairs

// Rows of a tile that fit into the registers together with kVectors columns of vectors.
constexpr long kVectors = kRegisters == 32 ? 3 : 2;
constexpr long kMostRows = kRegisters == 32 ? 8 : 5;
constexpr long kPairVectors = 2;
constexpr long kMostPairRows = kRegisters == 32 ? 13 : 5;

// Tiles that a contraction chooses itself as C::Chosen; 0 leaves it to the rules. over: 1 columns, 2 rows;
// rows, width: of a tile, one of them in vectors; order: 1 rows outside, 2 columns outside.
template <long over, long rows, long width, long order>
struct Tiles {
  static constexpr long kOver = over, kRows = rows, kWidth = width, kOrder = order;
};
template <class C, class = void>
struct TilesOf : Tiles<0, 0, 0, 0> {};
template <class C>
struct TilesOf<C, std::void_t<typename C::Chosen>> : C::Chosen {};

// Vectors lie over columns, or over rows where that leaves fewer lanes unused.
template <class C>
struct Tiling {
  using Own = TilesOf<C>;
  static constexpr long kWideRows = (C::Words::kTerms == 4 ? 4 : 2) * kLanes;
  static constexpr long kPadded = ceil_divide(C::kBlock, kLanes) * kLanes;
  static constexpr double kColumnCost = double(kPadded) / double(C::kBlock);
  static constexpr double kRowCost =
      double(ceil_divide(C::kRows, kLanes) * kLanes) / double(C::kRows);
  static constexpr bool kPaired = C::kPairWidth > 0;
  static constexpr bool kOverColumns =
      kPaired ||
      (C::kColumnsAreContiguous &&
       (Own::kOver != 0 ? Own::kOver == 1
                        : !(C::kRows >= kLanes && kRowCost * 1.05 < kColumnCost)));
  static constexpr long kMost =
      Own::kRows != 0 ? Own::kRows * (kOverColumns ? 1 : kLanes)
                      : kPaired ? kMostPairRows : kOverColumns ? kMostRows : kWideRows;
  static constexpr long kRowTiles = ceil_divide(C::kRows, kMost);
  // Balanced: no tile is much smaller than the others.
  static constexpr long kTileRows =
      kOverColumns ? ceil_divide(C::kRows, kRowTiles)
                   : ceil_divide(ceil_divide(C::kRows, kRowTiles), kLanes) * kLanes;
  static constexpr long kProducts = kPaired ? 4 : C::kTaps;
  // Words of a tile in packed weights.
  static constexpr long kPackedTile =
      kTileRows * (C::kTerms / C::Words::kTerms * kProducts + C::Words::kHead);
  static constexpr long kPackedGroup = kRowTiles * kPackedTile;
};

// [group][tile][word][tap][row of the tile]; rows that are not there are zero. Where words have a
// head, a tile begins with the sums of its rows. Of pairs [group][tile][product][term][row].
template <class C>
void pack(const float* w, float* packed) {
  using T = Tiling<C>;
  using W = typename C::Words;
  const auto term = [&](long g, long m, long k, long t) {
    return m < C::kRows ? C::kScale * C::weight(w, g, m, k, t) : 0.0f;
  };
  for (long g = 0; g < C::kGroups; ++g)
    for (long tile = 0; tile < T::kRowTiles; ++tile) {
      const long m = tile * T::kTileRows;
      if constexpr (T::kPaired) {
        for (long p = 0; p < T::kProducts; ++p)
          for (long k = 0; k < C::kTerms; ++k)
            for (long i = 0; i < T::kTileRows; ++i) {
              const float a = term(g, m + i, k, 0), b = term(g, m + i, k, 1);
              const float c = term(g, m + i, k, 2), ends = 0.5f * (a + c);
              *packed++ = p == 0 ? a : p == 1 ? ends + 0.5f * b : p == 2 ? ends - 0.5f * b : c;
            }
        continue;
      }
      if constexpr (W::kHead > 0)
        for (long i = 0; i < T::kTileRows; ++i) {
          std::int32_t sum = 0;
          for (long k = 0; k < C::kTerms; ++k)
            for (long t = 0; t < C::kTaps; ++t) sum += W::code(term(g, m + i, k, t));
          std::memcpy(packed++, &sum, sizeof sum);
        }
      for (long k = 0; k < C::kTerms; k += W::kTerms)
        for (long t = 0; t < C::kTaps; ++t)
          for (long i = 0; i < T::kTileRows; ++i) {
            if constexpr (W::kTerms == 1) {
              *packed++ = term(g, m + i, k, t);
            } else {
              float terms[W::kTerms];
              for (long part = 0; part < W::kTerms; ++part) terms[part] = term(g, m + i, k + part, t);
              const std::uint32_t word = W::word(terms);
              std::memcpy(packed++, &word, sizeof word);
            }
          }
    }
}

// kTileRows rows and N vectors of columns. kPart: the data has fewer columns, and nothing behind them may be read.
template <class C, int N, bool kPart = false, class Y, class E>
inline void column_tile(typename C::Words::Data data, const float* weights, Y y, long tile,
                        long count, long skip, const E& epilogue) {
  using W = typename C::Words;
  constexpr int M = Tiling<C>::kTileRows;
  typename W::Sum sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      if constexpr (W::kHead > 0) sum[i][j] = W::first(W::splat_word(weights + i), data);
      else sum[i][j] = Vector{};
    }
  weights += W::kHead * M;
  const auto value = [&](int i, int j) {
    if constexpr (C::kScaled) return W::value(sum[i][j]) * splat(data.scale);
    else return W::value(sum[i][j]);
  };
  for (long k = 0; k < C::kTerms; k += W::kTerms) {
    const auto from = data + C::term(k);
#pragma GCC unroll 4
    for (long t = 0; t < C::kTaps; ++t) {
      typename W::Lanes v[N];
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) {
        const auto at = from + (C::tap(t) + j * kLanes * W::kTerms);
        if constexpr (kPart) v[j] = load_part(at, 0, C::kBlock - j * kLanes);
        else v[j] = W::load_words(at);
        SYNO_HOLD(v[j]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const typename W::Lanes w = W::splat_word(weights + i);
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j) W::add(sum[i][j], v[j], w);
      }
      weights += M;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    const long m = tile * M + i;
    if (C::kRows % M != 0 && m >= C::kRows) break;
    const Y to = y + C::row(m);
    // What is skipped may lie before the row.
    const auto ends = epilogue.template along<C::kChannelOfRow>(to + skip);
    if (count >= N * kLanes) {
      if (C::kInPlace && skip > 0) {
        float lanes[2 * kLanes] = {};
        store(lanes, value(i, 0));
        store_end(ends, to + skip, load(lanes + skip), kLanes - skip);
      } else {
        store_end(ends, to, value(i, 0));
      }
#pragma GCC unroll 16
      for (int j = 1; j < N; ++j) store_end(ends, to + j * kLanes, value(i, j));
    } else {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j)
        store_end(ends, to + j * kLanes, value(i, j), count - j * kLanes);
    }
  }
}

// Floats: some hundred steps of a tile, what a far cache takes to answer.
constexpr long kAhead = 2048;

// Winograd's F(2, 3): results of two neighbouring rows, with data d of four rows and weights g of three taps, are
//   m0 + m1 + m2 and m1 - m2 - m3   with
//   m0 = (d0 - d2) g0, m1 = (d1 + d2) (g0 + g1 + g2) / 2, m2 = (d2 - d1) (g0 - g1 + g2) / 2, m3 = (d1 - d3) g2.
// Columns are those of pairs of rows, kPairWidth each. The data has even rows first, and then odd ones.
template <class C, int P, int N>
inline void pair_product(const float* data, const float* weights, float* results) {
  constexpr int M = Tiling<C>::kTileRows;
  constexpr long kOdd = (C::kPairRows + 1) / 2 * C::kPairWidth + C::kPairWidth;
  constexpr long kRow[] = {0, kOdd, C::kPairWidth, kOdd + C::kPairWidth};
  constexpr long kFirst = kRow[P == 0 ? 0 : P == 2 ? 2 : 1];
  constexpr long kSecond = kRow[P == 2 ? 1 : P == 3 ? 3 : 2];
  Vector sum[M][N];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) sum[i][j] = Vector{};
#pragma GCC unroll 2
  for (long k = 0; k < C::kTerms; ++k) {
    const float* const from = data + C::term(k);
    __builtin_prefetch(weights + kAhead);
    Vector v[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      const Vector a = load(from + kFirst + j * kLanes), b = load(from + kSecond + j * kLanes);
      v[j] = P == 1 ? a + b : a - b;
      SYNO_HOLD(v[j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const Vector w = splat(weights[i]);
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) sum[i][j] += w * v[j];
    }
    weights += M;
  }
  constexpr long kRest = M * N * kLanes;
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      float* const even = results + (i * N + j) * kLanes;
      float* const odd = even + kRest;
      if (P == 0) store(even, sum[i][j]);
      if (P == 1 || P == 2) store(even, load(even) + sum[i][j]);
      if (P == 1) store(odd, sum[i][j]);
      if (P == 2 || P == 3) store(odd, load(odd) - sum[i][j]);
    }
}

// kTileRows rows and N vectors of columns from n0 on. Of the results, the first so many `lines` are there.
template <class C, int N, class Y, class E>
inline void pair_tile(const float* data, const float* weights, Y y, long tile, long n0,
                      const E& epilogue, long lines) {
  constexpr int M = Tiling<C>::kTileRows;
  constexpr long kStep = M * C::kTerms, kWidth = C::kPairWidth;
  alignas(64) float results[(2 * M * N + 1) * kLanes];
  pair_product<C, 0, N>(data + n0, weights, results);
  pair_product<C, 1, N>(data + n0, weights + kStep, results);
  pair_product<C, 2, N>(data + n0, weights + 2 * kStep, results);
  pair_product<C, 3, N>(data + n0, weights + 3 * kStep, results);
  const long end = least(n0 + N * kLanes, C::kBlock), rows = least(M, C::kRows - tile * M);
  for (long n = n0, count; n < end; n += count) {
    const long pair = n / kWidth, w = n % kWidth;
    count = least(kWidth - w, end - n);
    for (long odd = 0; odd < 2 && 2 * pair + odd < lines; ++odd) {
      const float* from = results + odd * M * N * kLanes + (n - n0);
      const Y place = y + (2 * pair + odd) * kWidth + w;
      for (long i = 0; i < rows; ++i, from += N * kLanes) {
        const Y to = place + C::row(tile * M + i);
        const auto ends = epilogue.template along<C::kChannelOfRow>(to);
        for (long j = 0; j < count; j += kLanes)
          store_end(ends, to + j, load(from + j), count - j);
      }
    }
  }
}

// Columns of a tile whose rows are so many vectors.
constexpr long most_points(long vectors) {
  if (vectors > 2) return kRegisters == 32 ? 28 / vectors : 12 / vectors;
  return kRegisters == 32 ? 13 : 6;
}

// Rows [first, first + kLanes), of which kRowRun lie side by side at a time, and `count` are there.
template <class C>
struct Runs {
  static constexpr long kRun = C::kRowRun % kLanes == 0 ? kLanes : kLanes % C::kRowRun == 0 ? C::kRowRun : 1;
  long at[kLanes / kRun];
  long count;
  Runs(long first, long rows) : count(least(rows, kLanes)) {
    for (long r = 0; r < kLanes / kRun; ++r) at[r] = r * kRun < count ? C::row(first + r * kRun) : 0;
  }
  void store(CodesOut y, Vector v) const {
    std::uint8_t codes[kLanes];
    ::store(CodesOut{codes, y.zero, y.factor}, v);
    put(y.at, codes);
  }
  void store(float* y, Vector v) const {
    float lanes[kLanes];
    ::store(lanes, v);
    put(y, lanes);
  }

 private:
  template <class T>
  void put(T* y, const T* lanes) const {
    SYNO_UNROLL
    for (long r = 0; r < kLanes / kRun; ++r) {
      if (count >= (r + 1) * kRun) std::memcpy(y + at[r], lanes + r * kRun, sizeof(T) * kRun);
      else if (count > r * kRun)
        std::memcpy(y + at[r], lanes + r * kRun, sizeof(T) * static_cast<std::size_t>(count - r * kRun));
    }
  }
};

// Whether weights of a tile stay in registers beside its sums, so many together: a product that reads
// them from memory costs a load each time.
template <class W>
constexpr bool holds_weights(long sums_and_weights) {
  if constexpr (W::kTerms < 4) return true;
  else return sums_and_weights + W::kOwnRegisters <= kRegisters;
}

// N columns, and rows in vectors.
template <class C, int N, class Y, class E>
inline void row_tile(typename C::Words::Data data, const float* weights, Y y, long tile, long n0,
                     const E& epilogue) {
  using W = typename C::Words;
  constexpr int M = Tiling<C>::kTileRows;
  constexpr int V = M / kLanes;
  typename W::Sum sum[N][V];
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      if constexpr (W::kHead > 0) sum[n][v] = W::first(W::load_words(weights + v * kLanes), data);
      else sum[n][v] = Vector{};
    }
  weights += W::kHead * M;
  for (long k = 0; k < C::kTerms; k += W::kTerms) {
    const auto from = data + C::term(k);
#pragma GCC unroll 4
    for (long t = 0; t < C::kTaps; ++t) {
      typename W::Lanes w[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        // Weights stream by once; the processor's own prefetch ends at each page.
        __builtin_prefetch(weights + kAhead + v * kLanes);
        w[v] = W::load_words(weights + v * kLanes);
        if constexpr (holds_weights<W>(N * V + V)) SYNO_HOLD(w[v]);
      }
#pragma GCC unroll 16
      for (int n = 0; n < N; ++n) {
        const typename W::Lanes x = W::splat_word(from + (C::tap(t) + n * C::kPoint));
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) W::add(sum[n][v], x, w[v]);
      }
      weights += M;
    }
  }
  const long rows = least(M, C::kRows - tile * M);
  const auto value = [&](int n, int v) {
    if constexpr (C::kScaled) return W::value(sum[n][v]) * splat(data.scale);
    else return W::value(sum[n][v]);
  };
  if (C::kRowsAreContiguous) {
    const Y start = y + C::row(tile * M);
    for (int v = 0; v < V; ++v) {
      const long count = rows - v * kLanes;
      if (count <= 0) break;
      const auto ends = epilogue.template across<C::kChannelOfRow>(
          start + C::column(n0) + v * kLanes, count);
      for (int n = 0; n < N; ++n)
        store_end(ends, start + C::column(n0 + n) + v * kLanes, value(n, v), count);
    }
  } else if constexpr (C::kRowRun > 1 && std::is_same_v<E, Plain>) {
    for (int v = 0; v < V; ++v) {
      const Runs<C> runs(tile * M + v * kLanes, rows - v * kLanes);
      for (int n = 0; n < N; ++n) runs.store(y + C::column(n0 + n), value(n, v));
    }
  } else {
    // In registers: loads of what was just stored in pieces wait for one another.
#pragma GCC unroll 4
    for (int from = 0; from < N; from += kLanes)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        Vector turned[kLanes];
#pragma GCC unroll 16
        for (int n = 0; n < kLanes; ++n) turned[n] = from + n < N ? value(from + n, v) : Vector{};
        transpose(turned);
        const long count = least(rows - v * kLanes, kLanes);
#pragma GCC unroll 1
        for (long i = 0; i < count; ++i) {
          const Y to = y + C::row(tile * M + v * kLanes + i);
          const auto ends = epilogue.template along<C::kChannelOfRow>(to + C::column(n0 + from));
          if (C::kColumnsAreContiguous) {
            store_end(ends, to + n0 + from, turned[i], N - from);
          } else {
            scatter_end(ends, to, turned[i], N - from, [&](long n) { return C::column(n0 + from + n); });
          }
        }
      }
  }
}

// One block of columns of a group: tiles [first, last) of it, in the better order.
template <class C>
struct Block {
  using T = Tiling<C>;
  static constexpr long kWidth = T::kOverColumns ? ceil_divide(C::kBlock, kLanes) : C::kLine;
  static constexpr long kAcross =
      ceil_divide(kWidth, T::Own::kWidth != 0 ? T::Own::kWidth
                          : T::kPaired        ? kPairVectors
                          : T::kOverColumns   ? kVectors
                                              : most_points(T::kTileRows / kLanes));
  // Tiles of one row tile: those of all lines.
  static constexpr long kLines = T::kOverColumns ? 1 : C::kBlock / C::kLine;
  static constexpr long kAll = kAcross * kLines;
  static constexpr long kTiles = T::kRowTiles * kAll;
  // Balanced: a tile has kNarrow or kWide vectors or columns.
  static constexpr int kNarrow = kWidth / kAcross, kWide = ceil_divide(kWidth, kAcross);
  // Weights that do not fit into a cache close by are read once: rows outside, columns inside.
  static constexpr bool kRowsOutside =
      T::Own::kOrder != 0 ? T::Own::kOrder == 1 : T::kPackedGroup * 4 > (1 << 18);

  using Data = typename C::Words::Data;
  template <int N, class Y, class E>
  static void tile(Data data, const float* weights, Y y, long row_tile_, long line, long begin,
                   const E& epilogue, [[maybe_unused]] long lines) {
    if constexpr (T::kPaired) {
      pair_tile<C, N>(data, weights, y, row_tile_, begin * kLanes, epilogue, least(lines, C::kPairRows));
    } else if constexpr (T::kOverColumns && C::kInPlace && C::kBlock < N * kLanes) {
      column_tile<C, N, true>(data, weights, y, row_tile_, C::kBlock, 0, epilogue);
    } else if constexpr (T::kOverColumns) {
      long n = begin * kLanes, skip = 0;
      if (C::kInPlace && n + N * kLanes > C::kBlock) {
        // Nothing may be read behind the data: the tile moves back over columns that are done.
        skip = n + N * kLanes - C::kBlock;
        n -= skip;
      }
      column_tile<C, N>(data + n * C::Words::kTerms, weights, y + n, row_tile_, C::kBlock - n, skip, epilogue);
    } else {
      row_tile<C, N>(data + (line * C::kLineStep + begin * C::kPoint), weights, y, row_tile_,
                     line * C::kLine + begin, epilogue);
    }
  }

  // lines: those of a block in pairs that are there, where it is the last one.
  template <class Y, class E = Plain>
  static void run(Data data, const float* packed, Y y, long first, long last,
                  const E& epilogue = {}, long lines = 1L << 30) {
    for (long i = first; i < last; ++i) {
      const long row_tile_ = kRowsOutside ? i / kAll : i % T::kRowTiles;
      const long place = kRowsOutside ? i % kAll : i / T::kRowTiles;
      const long line = place / kAcross, part = place % kAcross;
      const float* weights = packed + row_tile_ * T::kPackedTile;
      const long begin = kWidth * part / kAcross, end = kWidth * (part + 1) / kAcross;
      if (end - begin == kWide) {
        tile<kWide>(data, weights, y, row_tile_, line, begin, epilogue, lines);
      } else {
        tile<kNarrow>(data, weights, y, row_tile_, line, begin, epilogue, lines);
      }
    }
  }
};
)source";
}

}  // namespace syno::cpp
