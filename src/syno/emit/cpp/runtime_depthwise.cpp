#include "syno/emit/cpp/runtime.h"

namespace syno::cpp {

std::string_view depthwise_runtime_text() {
  return R"source(
// --- depthwise convolutions of codes -------------------------------------------------------------
//
// D is a struct that describes one:  y[row][column][c] = sum over a, b of weight(c, a, b) * x[row + a][column + b][c]
//   kChannels, kRows, kColumns                 extents of the result; channels lie side by side
//   kTapRows, kTapColumns                      extents of a and b
//   kRowStep, kRowDilation, kRowFirst          row * kRowStep + a * kRowDilation + kRowFirst is a row of the data,
//   kRowExtent, kRowData, kRowStored           of which so many are there; elements between rows
//   kColumnStep, ...                           the same of columns
//   kDataStart, kStoredStart                   where the first row and column stand
//   kScaled, kChannelOfRow                     as of contractions

template <class D>
struct Words4 {
  static constexpr long kWords = ceil_divide(D::kTapRows, 4);  // of a column of taps
  static constexpr long kBlocks = ceil_divide(D::kChannels, kLanes);
  static constexpr long kBlock = kLanes * (1 + D::kTapColumns * kWords);
  // The last column of the data that a tap meets.
  static constexpr long kLast = (D::kColumns - 1) * D::kColumnStep +
                                (D::kTapColumns - 1) * D::kColumnDilation + D::kColumnFirst;
};

// [block of channels][sums of weights, then word by word of each column of taps][channel]
template <class D>
void pack_depthwise(const float* w, float* packed) {
  using W = Words4<D>;
  const auto code = [&](long c, long a, long b) -> std::int32_t {
    return c < D::kChannels && a < D::kTapRows ? Quads::code(D::weight(w, c, a, b)) : 0;
  };
  for (long c0 = 0; c0 < D::kChannels; c0 += kLanes) {
    for (long c = c0; c < c0 + kLanes; ++c) {
      std::int32_t sum = 0;
      for (long a = 0; a < D::kTapRows; ++a)
        for (long b = 0; b < D::kTapColumns; ++b) sum += code(c, a, b);
      std::memcpy(packed++, &sum, sizeof sum);
    }
    for (long b = 0; b < D::kTapColumns; ++b)
      for (long word = 0; word < W::kWords; ++word)
        for (long c = c0; c < c0 + kLanes; ++c) {
          std::uint32_t bits = 0;
          for (long part = 0; part < 4; ++part)
            bits |= (static_cast<std::uint32_t>(code(c, 4 * word + part, b)) & 0xff) << (8 * part);
          std::memcpy(packed++, &bits, sizeof bits);
        }
  }
}

// The rows of the data that taps meet, for one block of channels. Rows that are not there are zeros, one after the other.
template <class D>
struct TapRows {
  const std::uint8_t* at[D::kTapRows];
  long step[D::kTapRows];
};

inline IntVector load_codes(const std::uint8_t* from, long count) {
  ByteVector bytes{};
#if defined(SYNO_BYTE_MASKS)
  if (count < kLanes) bytes = (ByteVector)_mm_maskz_loadu_epi8((__mmask16)lanes_mask(0, count), from);
  else std::memcpy(&bytes, from, sizeof bytes);
#else
  std::memcpy(&bytes, from, static_cast<std::size_t>(least(count, kLanes)));
#endif
  return widened(bytes);
}

// kTile neighbouring results of a row. kInside: all their columns of the data are there; kWhole: so are all lanes, and
// all rows where columns are.
template <class D, int kTile, bool kInside, bool kWhole, class Y, class E>
inline void depthwise_tile(const TapRows<D>& rows, const IntVector* weights, IntVector first, float scale, Y y,
                           long column, long count, std::uint8_t zero, const E& ends) {
  constexpr long kWords = Words4<D>::kWords;
  constexpr int kMet = (kTile - 1) * D::kColumnStep + (D::kTapColumns - 1) * D::kColumnDilation + 1;
  // Only the first and last columns of all may be missing.
  constexpr long kAfter = Words4<D>::kLast + 1 - D::kColumnExtent;
  if (kWhole) count = kLanes;
  IntVector sum[kTile];
#pragma GCC unroll 16
  for (int t = 0; t < kTile; ++t) sum[t] = first;
  const long place = column * D::kColumnStep + D::kColumnFirst;
#pragma GCC unroll 64
  for (int i = 0; i < kMet; ++i) {
#pragma GCC unroll 4
    for (int word = 0; word < kWords; ++word) {
      IntVector data{};
      const bool there = kInside || (i + D::kColumnFirst >= 0 && i < kMet - kAfter) ||
                         static_cast<unsigned long>(place + i) < D::kColumnExtent;
#pragma GCC unroll 4
      for (int part = 0; part < 4; ++part) {
        const int a = 4 * word + part;
        if (a >= D::kTapRows) break;
        IntVector one = IntVector{} + zero;
        if (there) one = load_codes(rows.at[a] + (place + i) * (kInside ? D::kColumnData : rows.step[a]), count);
        data |= (IntVector)((BitVector)one << (8 * part));
      }
#pragma GCC unroll 16
      for (int t = 0; t < kTile; ++t) {
        const int tap = i - t * D::kColumnStep;
        if (tap < 0 || tap % D::kColumnDilation != 0 || tap / D::kColumnDilation >= D::kTapColumns) continue;
        Quads::add(sum[t], data, weights[tap / D::kColumnDilation * kWords + word]);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTile; ++t) {
    const Vector v = D::kScaled ? Quads::value(sum[t]) * splat(scale) : Quads::value(sum[t]);
    store_end(ends, y + t * D::kColumnStored, v, count);
  }
}

template <class D, class Y, class E = Plain>
void run_depthwise(Codes x, const float* packed, Y y, const Team& team, const E& epilogue = {}) {
  using W = Words4<D>;
  constexpr long kMost = D::kTapColumns * W::kWords > 8 ? 4 : 8;
  constexpr long kAcross = ceil_divide(D::kColumns, kMost);
  constexpr int kNarrow = D::kColumns / kAcross, kWide = ceil_divide(D::kColumns, kAcross);
  const auto zero = static_cast<std::uint8_t>(x.zero);
  std::uint8_t zeros[kLanes];
  std::memset(zeros, zero, sizeof zeros);
  const long last = team.end(D::kRows);
  for (long row = team.begin(D::kRows); row < last; ++row) {
    for (long block = 0; block < W::kBlocks; ++block) {
      const long c = block * kLanes, count = least(D::kChannels - c, kLanes);
      TapRows<D> rows;
      bool all_rows = true;
      for (long a = 0; a < D::kTapRows; ++a) {
        const long place = row * D::kRowStep + a * D::kRowDilation + D::kRowFirst;
        const bool there = static_cast<unsigned long>(place) < D::kRowExtent;
        rows.at[a] = there ? x.at + D::kDataStart + place * D::kRowData + c : zeros;
        rows.step[a] = there ? D::kColumnData : 0;
        all_rows = all_rows && there;
      }
      const float* from = packed + block * W::kBlock;
      const IntVector first = Quads::first(load_ints(from), x);
      IntVector weights[D::kTapColumns * W::kWords];
#pragma GCC unroll 16
      for (int w = 0; w < D::kTapColumns * W::kWords; ++w) weights[w] = load_ints(from + (1 + w) * kLanes);
      const Y line = y + (D::kStoredStart + row * D::kRowStored + c);
      const auto ends = epilogue.template across<D::kChannelOfRow>(line, count);
      for (long part = 0; part < kAcross; ++part) {
        const long begin = D::kColumns * part / kAcross, end = D::kColumns * (part + 1) / kAcross;
        const long left = begin * D::kColumnStep + D::kColumnFirst;
        const long right = (end - 1) * D::kColumnStep + (D::kTapColumns - 1) * D::kColumnDilation + D::kColumnFirst;
        const bool inside = left >= 0 && right < D::kColumnExtent;
        const Y to = line + begin * D::kColumnStored;
        const auto tile = [&](auto size) {
          constexpr int kTile = decltype(size)::value;
          if (count < kLanes) {
            depthwise_tile<D, kTile, false, false>(rows, weights, first, x.scale, to, begin, count, zero, ends);
          } else if (inside && all_rows) {
            depthwise_tile<D, kTile, true, true>(rows, weights, first, x.scale, to, begin, count, zero, ends);
          } else {
            depthwise_tile<D, kTile, false, true>(rows, weights, first, x.scale, to, begin, count, zero, ends);
          }
        };
        if (end - begin == kWide) tile(std::integral_constant<int, kWide>{});
        else tile(std::integral_constant<int, kNarrow>{});
      }
    }
  }
}
)source";
}

}  // namespace syno::cpp
