#include "syno/emit/training/print_product.h"

#include <algorithm>

#include "syno/emit/cpp/print_rows.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/text.h"

namespace syno::training {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

class ProductPrinter {
 public:
  ProductPrinter(Printer& out, const LoopProgram& program, const Product& product, bool adds)
      : out_(out), product_(product), nest_(product.nest), adds_(adds) {
    a_ = flat_address(program, nest_, nest_.operands[0]);
    b_ = flat_address(program, nest_, nest_.operands[1]);
    y_ = flat_address(program, nest_, nest_.store);
  }

  void print(const std::string& name) {
    out_.line("struct " + name + " {").indent();
    const auto constant = [&](const std::string& what, std::int64_t value) {
      out_.line("static constexpr long " + what + " = " + number(value) + ";");
    };
    constant("kOuter", product_.product(product_.outer));
    constant("kRows", product_.product(product_.rows));
    constant("kColumns", product_.product(product_.columns));
    // Rows of several tiles are a constant step apart; those of a single one stand anywhere.
    constant("kRowStep", last_step(a_, product_.rows));
    constant("kRowStore", last_step(y_, product_.rows));
    constant("kMostInTile", most_in_tile(product_));
    places("kRowPlaces", a_);
    places("kRowStores", y_);
    out_.line("static constexpr bool kAdds = " + std::string(adds_ ? "true" : "false") + ";");
    out_.line("static constexpr float kScale = " + number(nest_.scale) + ";");
    place("a_of", a_);
    place("b_of", b_);
    place("y_of", y_);
    terms();
    out_.line("static void run(const float* a, const float* b, float* y, const Team& team) {");
    out_.line("  run_product<" + name + ">(a, b, y, team);");
    out_.line("}");
    out_.dedent().line("};");
  }

 private:
  static std::int64_t last_step(const Index& address, const std::vector<int>& axes) {
    return axes.empty() ? 0 : address.coefficient(axes.back());
  }

  // Of the rows of the first tile.
  void places(const std::string& name, const Index& address) {
    std::vector<std::string> list;
    const std::int64_t count = std::min(product_.product(product_.rows), most_in_tile(product_));
    for (std::int64_t row = 0; row < count; ++row) {
      std::int64_t rest = row;
      std::int64_t place = 0;
      for (std::size_t i = product_.rows.size(); i-- > 0;) {
        const std::int64_t extent = nest_.axes[at(product_.rows[i])].extent;
        place += rest % extent * address.coefficient(product_.rows[i]);
        rest /= extent;
      }
      list.push_back(number(place));
    }
    out_.line("static constexpr long " + name + "[] = {" + join(list, ", ") + "};");
  }

  // Where the product of number s begins.
  void place(const std::string& name, const Index& address) {
    Index value(address.constant());
    for (const int axis : product_.outer)
      value = value + Index::axis(axis) * address.coefficient(axis);
    out_.line("static long " + name + "([[maybe_unused]] long s) {").indent();
    cpp::print_decode(out_, nest_, product_.outer, "s");
    out_.line("return " + value.text(cpp::c_names(nest_)) + ";");
    out_.dedent().line("}");
  }

  // The sums of a tile: loops over the terms, the one with the largest step in b outermost.
  void terms() {
    std::vector<int> axes = product_.terms;
    std::stable_sort(axes.begin(), axes.end(), [&](int one, int other) {
      return std::abs(b_.coefficient(one)) > std::abs(b_.coefficient(other));
    });
    out_.line("template <int M, int N>");
    out_.line(
        "static inline void sum(const float* a, const float* b, Vector (&sums)[M][N], const Tail& "
        "tail) {");
    out_.indent();
    const std::vector<std::string> names = cpp::c_names(nest_);
    std::string from_a = "a";
    std::string from_b = "b";
    for (const int axis : axes) {
      const std::string& name = names[at(axis)];
      out_.line("for (long " + name + " = 0; " + name + " < " +
                number(nest_.axes[at(axis)].extent) + "; ++" + name + ") {")
          .indent();
      const auto step = [&](const char* what, std::string& from, const Index& address) {
        const std::string next = std::string(what) + "_" + name;
        out_.line("const float* const " + next + " = " + from + " + " + name + " * " +
                  number(address.coefficient(axis)) + ";");
        from = next;
      };
      step("a", from_a, a_);
      step("b", from_b, b_);
    }
    out_.line("multiply_add<M, N>(kRowPlaces, " + from_a + ", " + from_b + ", sums, tail);");
    for (std::size_t i = 0; i < axes.size(); ++i) out_.dedent().line("}");
    out_.dedent().line("}");
  }

  Printer& out_;
  const Product& product_;
  const LoopNest& nest_;
  bool adds_;
  Index a_;
  Index b_;
  Index y_;
};

}  // namespace

void print_product(Printer& out, const LoopProgram& program, const Product& product, bool adds,
                   const std::string& name) {
  ProductPrinter(out, program, product, adds).print(name);
}

std::string product_runtime() {
  return R"source(
namespace {

// --- products whose operands are not packed -------------------------------------------------------

#define SYNO_INLINE inline __attribute__((always_inline))

// How many lanes of the last vector of a tile there are.
struct Tail {
#if defined(__AVX512F__)
  __mmask16 mask;
  explicit Tail(long count)
      : mask((__mmask16)(count >= kLanes ? 0xffffu : 0xffffu >> (kLanes - count))) {}
  Vector load(const float* from) const { return (Vector)_mm512_maskz_loadu_ps(mask, from); }
  void store(float* to, Vector v) const { _mm512_mask_storeu_ps(to, mask, (__m512)v); }
#else
  long count;
  explicit Tail(long count_) : count(least(count_, kLanes)) {}
  Vector load(const float* from) const { return load_part(from, 0, count); }
  void store(float* to, Vector v) const { store_part(to, v, count); }
#endif
};

template <int M, int N>
SYNO_INLINE void multiply_add(const long* places, const float* a, const float* b,
                              Vector (&sums)[M][N], const Tail& tail) {
  Vector v[N];
#pragma GCC unroll 32
  for (int j = 0; j + 1 < N; ++j) {
    v[j] = load(b + j * kLanes);
    SYNO_HOLD(v[j]);
  }
  v[N - 1] = tail.load(b + (N - 1) * kLanes);
  SYNO_HOLD(v[N - 1]);
#pragma GCC unroll 32
  for (int i = 0; i < M; ++i) {
    const Vector w = splat(a[places[i]]);
#pragma GCC unroll 32
    for (int j = 0; j < N; ++j) sums[i][j] += w * v[j];
  }
}

template <class P, int M, int N>
void product_tile(const float* a, const float* b, float* y, long count) {
  const Tail tail(count - (N - 1) * kLanes);
  Vector sums[M][N];
#pragma GCC unroll 32
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 32
    for (int j = 0; j < N; ++j) sums[i][j] = Vector{};
  P::template sum<M, N>(a, b, sums, tail);
#pragma GCC unroll 32
  for (int i = 0; i < M; ++i) {
    float* const to = y + P::kRowStores[i];
#pragma GCC unroll 32
    for (int j = 0; j < N; ++j) {
      Vector v = P::kScale == 1 ? sums[i][j] : sums[i][j] * splat(P::kScale);
      if (j + 1 < N) {
        if (P::kAdds) v += load(to + j * kLanes);
        store(to + j * kLanes, v);
      } else {
        if (P::kAdds) v += tail.load(to + j * kLanes);
        tail.store(to + j * kLanes, v);
      }
    }
  }
}

template <class P, int M>
void product_row(const float* a, const float* b, float* y, long begin, long end) {
  constexpr long kWidth = ceil_divide(P::kColumns, kLanes);
  constexpr long kAcross = ceil_divide(kWidth, kVectors);
  constexpr int kNarrow = kWidth / kAcross, kWide = ceil_divide(kWidth, kAcross);
  const long count = P::kColumns - begin * kLanes;
  if (end - begin == kWide) {
    product_tile<P, M, kWide>(a, b + begin * kLanes, y + begin * kLanes, count);
  } else {
    product_tile<P, M, kNarrow>(a, b + begin * kLanes, y + begin * kLanes, count);
  }
}

// Tiles are balanced: none is much smaller than the others.
template <class P>
void run_product(const float* a, const float* b, float* y, const Team& team) {
  constexpr long kWidth = ceil_divide(P::kColumns, kLanes);
  constexpr long kAcross = ceil_divide(kWidth, kVectors);
  // Rows of a single tile stand anywhere, whatever the registers.
  constexpr long kTile = kRegisters == 32 || P::kRows <= P::kMostInTile ? P::kMostInTile : kMostRows;
  constexpr long kDown = ceil_divide(P::kRows, kTile);
  constexpr int kLow = P::kRows / kDown, kHigh = ceil_divide(P::kRows, kDown);
  const long last = team.end(P::kOuter * kAcross * kDown);
  for (long u = team.begin(P::kOuter * kAcross * kDown); u < last; ++u) {
    const long s = u / (kAcross * kDown), part = u / kDown % kAcross, down = u % kDown;
    const long row = P::kRows * down / kDown, rows = P::kRows * (down + 1) / kDown - row;
    const long begin = kWidth * part / kAcross, end = kWidth * (part + 1) / kAcross;
    const float* const from_a = a + P::a_of(s) + row * P::kRowStep;
    const float* const from_b = b + P::b_of(s);
    float* const to = y + P::y_of(s) + row * P::kRowStore;
    if (rows == kHigh) {
      product_row<P, kHigh>(from_a, from_b, to, begin, end);
    } else {
      product_row<P, kLow>(from_a, from_b, to, begin, end);
    }
  }
}

// --- blocks of a batch -----------------------------------------------------------------------------

inline void zero(float* to, long count, const Team& team) {
  const long begin = team.begin(count);
  std::memset(to + begin, 0, sizeof(float) * static_cast<std::size_t>(team.end(count) - begin));
}
inline void add(float* to, const float* from, long count, const Team& team) {
  for (long i = team.begin(count); i < team.end(count); ++i) to[i] += from[i];
}
// `count` floats, and zeros up to `total`.
inline void fill_block(float* to, const float* from, long count, long total, const Team& team) {
  if (team.thread != 0) return;
  std::memcpy(to, from, sizeof(float) * static_cast<std::size_t>(count));
  std::memset(to + count, 0, sizeof(float) * static_cast<std::size_t>(total - count));
}

}  // namespace
)source";
}

}  // namespace syno::training
