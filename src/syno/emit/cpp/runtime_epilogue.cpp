#include "syno/emit/cpp/runtime.h"

namespace syno::cpp {

std::string_view epilogue_runtime_text() {
  return R"source(
// --- epilogues -----------------------------------------------------------------------------------
//
// Activations. Their errors are at most 2e-6 of the value or of 1; NaN and infinity become what the
// definition makes of them.

struct Same {
  static Vector of(Vector v) { return v; }
};
// NaN stays what it is.
inline Vector at_least(Vector v, Vector bound) {
#if defined(__AVX512F__)
  return (Vector)_mm512_max_ps((__m512)bound, (__m512)v);
#elif defined(__AVX2__)
  return (Vector)_mm256_max_ps((__m256)bound, (__m256)v);
#else
  return v < bound ? bound : v;
#endif
}
inline Vector at_most(Vector v, Vector bound) {
#if defined(__AVX512F__)
  return (Vector)_mm512_min_ps((__m512)bound, (__m512)v);
#elif defined(__AVX2__)
  return (Vector)_mm256_min_ps((__m256)bound, (__m256)v);
#else
  return v > bound ? bound : v;
#endif
}
struct Relu {
  static Vector of(Vector v) { return at_least(v, Vector{}); }
};
struct Relu6 {
  static Vector of(Vector v) { return at_most(Relu::of(v), splat(6.0f)); }
};
struct Hardsigmoid {
  static Vector of(Vector v) { return Relu6::of(v + splat(3.0f)) / splat(6.0f); }
};
struct Hardswish {
  static Vector of(Vector v) { return v * Hardsigmoid::of(v); }
};

inline Vector magnitude(Vector v) { return v < Vector{} ? -v : v; }

// exp(v) for v from -87 to 88.8, infinity from 88.4 on: 2^n * exp(r) with |r| <= log(2) / 2. The factors are those of the
// polynomial with the least relative error, 9e-8, that is 1 for 0.
inline Vector bounded_exp(Vector v) {
  const Vector round = splat(12582912.0f);  // 1.5 * 2^23
  const Vector rounded = v * splat(1.44269504f) + round;
  const Vector n = rounded - round;
  const Vector r = v - n * splat(0.693359375f) + n * splat(2.12194440e-4f);
  Vector sum = splat(0.00829027221f);
  sum = sum * r + splat(0.0418981612f);
  sum = sum * r + splat(0.166676387f);
  sum = sum * r + splat(0.499991477f);
  sum = sum * r + splat(0.999999702f);
  sum = sum * r + splat(1.0f);
  const IntVector power = ((IntVector)rounded - ((IntVector)round - 127)) << 23;
  return sum * (Vector)power;
}
// exp(v) for v <= 0; zero where it is below 2^-125.
inline Vector exp_of(Vector v) {
  const Vector least = splat(-87.0f);
  return v < least ? Vector{} : bounded_exp(at_least(v, least));
}

// 1 + exp(-v), which is what sigmoid divides by.
inline Vector sigmoid_divisor(Vector v) {
  return splat(1.0f) + bounded_exp(at_most(at_least(-v, splat(-87.0f)), splat(88.8f)));
}
struct Sigmoid {
  static Vector of(Vector v) { return splat(1.0f) / sigmoid_divisor(v); }
};
struct Silu {
  static Vector of(Vector v) { return v / sigmoid_divisor(v); }
};
struct Tanh {
  static Vector of(Vector v) {
    const Vector size = magnitude(v), square = v * v;
    const Vector e = exp_of(size * splat(-2.0f));
    const Vector far = (splat(1.0f) - e) / (splat(1.0f) + e);
    // Near 0 the difference would cancel: the first terms of the series.
    Vector series = splat(62.0f / 2835);
    series = series * square - splat(17.0f / 315);
    series = series * square + splat(2.0f / 15);
    series = series * square - splat(1.0f / 3);
    const Vector near = v + v * square * series;
    return size < splat(0.25f) ? near : v < Vector{} ? -far : far;
  }
};
// v times the share of a normal distribution below v. Its tail, erfc(z) / 2 with z = |v| / sqrt(2), is
// t * poly(t) * exp(-z^2), t = 1 / (1 + 0.42 * z); the factors are those of the polynomial with the least relative error,
// 1.7e-7, for z up to 9.4. So a result far below 0 keeps its digits, which a normalization may bring up again.
struct Gelu {
  static Vector of(Vector v) {
    const Vector t = splat(1.0f) / (splat(1.0f) + magnitude(v) * splat(0.42f * 0.70710678f));
    Vector sum = splat(0.0351962440f);
    sum = sum * t - splat(0.160468842f);
    sum = sum * t + splat(0.220931798f);
    sum = sum * t - splat(0.0658200475f);
    sum = sum * t + splat(0.134671177f);
    sum = sum * t + splat(0.0972704025f);
    sum = sum * t + splat(0.119808082f);
    sum = sum * t + splat(0.118411105f);
    const Vector tail = sum * t * exp_of(v * v * splat(-0.5f));
    return v * (v < Vector{} ? tail : splat(1.0f) - tail);
  }
};
struct GeluTanh {
  static Vector of(Vector v) {
    const Vector inside = v + splat(0.044715f) * v * v * v;
    return v / sigmoid_divisor(inside * splat(2 * 0.79788456f));
  }
};

// Results as they are.
struct Plain {
  template <class To>
  static Vector value(Vector v, To, long) {
    return v;
  }
  template <class To, class Place>
  static Vector value_at(Vector v, To, long, const Place&) {
    return v;
  }
  template <bool kOneChannel, class To>
  static Plain along(To) {
    return {};
  }
  template <bool kSameChannels, class To>
  static Plain across(To, long) {
    return {};
  }
};

// An epilogue of lanes whose channels are known.
template <class E>
struct OfChannels {
  const E& epilogue;
  Vector scale, bias;

  template <class To>
  Vector value(Vector v, To to, long count) const {
    return E::of(v, scale, bias, epilogue.more(to, count));
  }
  template <class To, class Place>
  Vector value_at(Vector v, To to, long count, const Place& place) const {
    return E::of(v, scale, bias, epilogue.more_at(to, count, place));
  }
};

// activation(v * scale[c] + bias[c] + residual). The element at `place` of y has c = place / kInner
// mod kChannels; bias stands before scale.
template <bool kScale, bool kBias, bool kResidual, long kInner, long kChannels, class Activation,
          class From = const float*, class To = float*>
struct Epilogue {
  const float* channel;
  From residual;
  To y;

  static Vector of(Vector v, Vector scale, Vector bias, Vector more) {
    if constexpr (kScale) v *= scale;
    if constexpr (kBias) v += bias;
    if constexpr (kResidual) v += more;
    return Activation::of(v);
  }
  static long channel_of(unsigned long place) {
    return static_cast<long>(place / kInner % kChannels);
  }
  unsigned long place_of(To to) const { return static_cast<unsigned long>(to - y); }

  OfChannels<Epilogue> of_channel(long c) const {
    return {*this, kScale ? splat(channel[kChannels + c]) : Vector{},
            kBias ? splat(channel[c]) : Vector{}};
  }
  // Channels from c on.
  OfChannels<Epilogue> of_channels(long c, long count) const {
    return {*this, kScale ? load_part(channel + kChannels + c, 0, count) : Vector{},
            kBias ? load_part(channel + c, 0, count) : Vector{}};
  }
  template <class Channel>
  __attribute__((noinline)) OfChannels<Epilogue> of_any(long count, const Channel& c) const {
    const auto lanes = [&](const float* from) {
      return gather(count, [&](long lane) { return from[c(static_cast<unsigned long>(lane))]; });
    };
    return {*this, kScale ? lanes(channel + kChannels) : Vector{},
            kBias ? lanes(channel) : Vector{}};
  }
  // Of elements side by side.
  OfChannels<Epilogue> of_places(To to, long count) const {
    if constexpr (!kScale && !kBias) return {*this, Vector{}, Vector{}};
    const unsigned long place = place_of(to);
    const long c = channel_of(place);
    count = least(count, kLanes);
    if (kInner == 1) {
      if (c + count <= kChannels) return of_channels(c, count);
    } else if (static_cast<long>(place % kInner) + count <= kInner) {
      return of_channel(c);
    }
    return of_any(count, [&](unsigned long lane) { return channel_of(place + lane); });
  }

  Vector more(To to, long count) const {
    return kResidual ? load_part(residual + (to - y), 0, count) : Vector{};
  }
  template <class Place>
  Vector more_at(To to, long count, const Place& place) const {
    if constexpr (!kResidual) return Vector{};
    return gather(count, [&](long lane) -> float { return residual[to + place(lane) - y]; });
  }

  // For lanes that are stored side by side from `to` on.
  Vector value(Vector v, To to, long count) const {
    return of_places(to, count).value(v, to, count);
  }
  // For lanes that are stored anywhere.
  template <class Place>
  Vector value_at(Vector v, To to, long count, const Place& place) const {
    const auto ends = of_any(count, [&](unsigned long lane) {
      return channel_of(place_of(to + place(static_cast<long>(lane))));
    });
    return ends.value_at(v, to, count, place);
  }

  // For lanes that share the channel of `to`, or not.
  template <bool kOneChannel>
  auto along(To to) const {
    if constexpr (kOneChannel && (kScale || kBias)) return of_channel(channel_of(place_of(to)));
    else return *this;
  }
  // For vectors of the channels that a vector at `to` has, or not.
  template <bool kSameChannels>
  auto across(To to, long count) const {
    if constexpr (kSameChannels) return of_places(to, count);
    else return *this;
  }
};

template <class E, class To>
inline void store_end(const E& epilogue, To to, Vector v) {
  store(to, epilogue.value(v, to, kLanes));
}
template <class E, class To>
inline void store_end(const E& epilogue, To to, Vector v, long count) {
  if (count > 0) store_part(to, epilogue.value(v, to, count), count);
}
template <class E, class To, class Place>
inline void scatter_end(const E& epilogue, To to, Vector v, long count, const Place& place) {
  scatter(to, epilogue.value_at(v, to, count, place), count, place);
}
)source";
}

}  // namespace syno::cpp
