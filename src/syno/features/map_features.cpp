#include "syno/features/map_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "syno/features/linear_map.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// A share of the greatest value below which an element counts as zero.
constexpr double kZero = 1e-9;
// How often the operator is applied in a row.
constexpr int kTimes = 3;
// Positions at the border that are left out where a shifted input is compared with a shifted output.
constexpr std::int64_t kBorder = 2;
// Products of a Gram matrix.
constexpr double kMostProducts = 1 << 28;

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

double sum(std::span<const double> values) {
  double all = 0;
  for (const double value : values) all += value;
  return all;
}

// The participation ratio.
double participation(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  const double all = sum(values);
  return ratio(all * all, squares);
}

std::size_t count_nonzero(std::span<const double> values) {
  if (values.empty()) return 0;
  const double least = kZero * std::ranges::max(values);
  return static_cast<std::size_t>(
      std::ranges::count_if(values, [&](double v) { return v > least; }));
}

// A matrix, row-major.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<float> data;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), data(r * c) {}
  float* row(std::size_t r) { return &data[r * columns]; }
  const float* row(std::size_t r) const { return &data[r * columns]; }
};

Matrix gram(const Matrix& m) {
  Matrix found(m.rows, m.rows);
  for (std::size_t a = 0; a < m.rows; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      std::array<float, 8> lanes{};
      std::size_t i = 0;
      for (; i + 8 <= m.columns; i += 8)
        for (std::size_t l = 0; l < 8; ++l) lanes[l] += m.row(a)[i + l] * m.row(b)[i + l];
      float all = 0;
      for (; i < m.columns; ++i) all += m.row(a)[i] * m.row(b)[i];
      for (const float lane : lanes) all += lane;
      found.row(a)[b] = found.row(b)[a] = all;
    }
  }
  return found;
}

// Of the squared singular values of a matrix with this Gram matrix.
double spectrum(const Matrix& g) {
  double trace = 0, squares = 0;
  for (std::size_t i = 0; i < g.rows; ++i) trace += static_cast<double>(g.row(i)[i]);
  for (const float value : g.data) squares += static_cast<double>(value) * value;
  return ratio(trace * trace, squares);
}

// By elimination with the greatest pivot on the diagonal.
std::size_t rank(const Matrix& g) {
  std::vector<double> rest(g.data.begin(), g.data.end());
  const std::size_t n = g.rows;
  double greatest = 0;
  for (std::size_t step = 0; step < n; ++step) {
    std::size_t pivot = 0;
    for (std::size_t i = 1; i < n; ++i)
      if (rest[i * n + i] > rest[pivot * n + pivot]) pivot = i;
    const double value = rest[pivot * n + pivot];
    greatest = std::max(greatest, value);
    if (value <= 1e-5 * greatest || value <= 0) return step;
    const std::vector<double> row(rest.begin() + static_cast<std::ptrdiff_t>(pivot * n),
                                  rest.begin() + static_cast<std::ptrdiff_t>((pivot + 1) * n));
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = row[i] / value;
      for (std::size_t j = 0; j < n; ++j) rest[i * n + j] -= factor * row[j];
    }
  }
  return n;
}

// The elements of a tensor by channel and position, both row-major.
struct Layout {
  std::vector<int> axes;
  std::vector<std::int64_t> extents;
  std::size_t channels = 1, positions = 1;
  std::vector<std::size_t> channel_of, position_of;
  // By channel and position: the element.
  std::vector<std::size_t> element;

  Layout(const std::vector<std::int64_t>& shape, const std::vector<int>& positions_of) {
    std::vector<bool> is_position(shape.size());
    for (const int d : positions_of) {
      ensure(d >= 0 && static_cast<std::size_t>(d) < shape.size(),
             "map_features: no such dimension");
      is_position[static_cast<std::size_t>(d)] = true;
    }
    std::size_t all = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto extent = static_cast<std::size_t>(shape[d]);
      all *= extent;
      (is_position[d] ? positions : channels) *= extent;
      if (!is_position[d]) continue;
      axes.push_back(static_cast<int>(d));
      extents.push_back(shape[d]);
    }
    channel_of.resize(all);
    position_of.resize(all);
    element.resize(all);
    for (std::size_t e = 0; e < all; ++e) {
      std::size_t rest = e, c = 0, p = 0, c_stride = 1, p_stride = 1;
      for (std::size_t d = shape.size(); d-- > 0;) {
        const auto extent = static_cast<std::size_t>(shape[d]);
        std::size_t& to = is_position[d] ? p : c;
        std::size_t& stride = is_position[d] ? p_stride : c_stride;
        to += rest % extent * stride;
        stride *= extent;
        rest /= extent;
      }
      channel_of[e] = c;
      position_of[e] = p;
      element[c * positions + p] = e;
    }
  }

  // The number of the position with these values, one an axis.
  std::size_t number(std::span<const std::int64_t> at) const {
    std::size_t flat = 0;
    for (std::size_t a = 0; a < at.size(); ++a)
      flat = flat * static_cast<std::size_t>(extents[a]) + static_cast<std::size_t>(at[a]);
    return flat;
  }
  std::size_t middle() const {
    std::vector<std::int64_t> at;
    for (const std::int64_t extent : extents) at.push_back(extent / 2);
    return number(at);
  }
  // All combinations of first and last.
  std::vector<std::size_t> corners() const {
    std::vector<std::size_t> found;
    for (std::size_t corner = 0; corner < std::size_t{1} << extents.size(); ++corner) {
      std::vector<std::int64_t> at;
      for (std::size_t a = 0; a < extents.size(); ++a)
        at.push_back(corner >> a & 1 ? extents[a] - 1 : 0);
      found.push_back(number(at));
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  // What stands at each value of an axis, summed over the others.
  std::vector<double> margin(std::span<const double> by_position, std::size_t axis) const {
    std::vector<double> found(static_cast<std::size_t>(extents[axis]));
    std::size_t inner = 1;
    for (std::size_t a = axis + 1; a < extents.size(); ++a)
      inner *= static_cast<std::size_t>(extents[a]);
    for (std::size_t p = 0; p < by_position.size(); ++p)
      found[p / inner % found.size()] += by_position[p];
    return found;
  }
};

struct Range {
  double least = 0;
  double greatest = 0;
};
Range range(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {std::ranges::min(values), std::ranges::max(values)};
}

// Where the energy of an input stands, by axis.
struct Field {
  double positions = 0, effective = 0;
  Range extent, spread, offset, axis_effective;

  Field() = default;
  Field(std::span<const double> energy, const Layout& layout) {
    positions = static_cast<double>(count_nonzero(energy));
    effective = participation(energy);
    std::vector<double> extents, spreads, offsets, effectives;
    for (std::size_t a = 0; a < layout.extents.size(); ++a) {
      const std::vector<double> margin = layout.margin(energy, a);
      const double all = sum(margin), least = kZero * std::ranges::max(margin);
      double first = -1, last = -1, mean = 0, square = 0;
      for (std::size_t i = 0; i < margin.size(); ++i) {
        const auto at = static_cast<double>(i);
        mean += ratio(margin[i], all) * at;
        square += ratio(margin[i], all) * at * at;
        if (margin[i] <= least) continue;
        if (first < 0) first = at;
        last = at;
      }
      const auto length = static_cast<double>(margin.size());
      extents.push_back(first < 0 ? 0 : (last - first + 1) / length);
      spreads.push_back(std::sqrt(std::max(0.0, square - mean * mean)));
      const std::int64_t center = layout.extents[a] / 2;
      offsets.push_back(std::abs(mean - static_cast<double>(center)));
      effectives.push_back(participation(margin));
    }
    extent = range(extents);
    spread = range(spreads);
    offset = range(offsets);
    axis_effective = range(effectives);
  }
};

class Features {
 public:
  Features(const Operator& op, const Values& values, const Positions& positions, std::uint64_t seed)
      : map_(op, values, seed),
        in_(map_.input(), positions.input),
        out_(map_.output(), positions.output),
        seed_(seed) {
    const double channels = static_cast<double>(std::max(in_.channels, out_.channels));
    if (channels * channels * static_cast<double>(map_.inputs()) <= kMostProducts) return;
    throw Complaint("the operator has too many channels to be examined as a linear map")
        .expected("at most 2^28 products for a position", "more")
        .hint("use a binding with smaller sizes")
        .error();
  }

  std::vector<double> all() {
    at_the_middle();
    at_the_corners();
    of_the_whole();
    of_shifts();
    of_sizes();
    of_powers();  // samples other weights
    return std::move(found_);
  }

 private:
  void add(double value) { found_.push_back(value); }
  void add(const Range& range) {
    add(range.least);
    add(range.greatest);
  }

  Matrix rows_at(std::size_t position) const {
    Matrix rows(out_.channels, map_.inputs());
    for (std::size_t c = 0; c < out_.channels; ++c)
      map_.add_row(out_.element[c * out_.positions + position], rows.row(c));
    return rows;
  }

  static double energy(const Matrix& m) {
    double all = 0;
    for (const float value : m.data) all += static_cast<double>(value) * value;
    return all;
  }

  void at_the_middle() {
    const Matrix rows = rows_at(out_.middle());
    middle_energy_ = energy(rows);
    const auto outs = static_cast<double>(out_.channels), ins = static_cast<double>(in_.channels);
    const Matrix g = gram(rows);
    add(spectrum(g) / outs);
    add(static_cast<double>(rank(g)) / outs);

    // Energy by position; by output channel, input channel; and of each of these triples.
    std::vector<double> by_position(in_.positions), pairs(out_.channels * in_.channels);
    std::vector<double> triples(out_.channels * in_.channels * in_.positions);
    for (std::size_t c = 0; c < out_.channels; ++c) {
      for (std::size_t e = 0; e < map_.inputs(); ++e) {
        const double value = static_cast<double>(rows.row(c)[e]) * rows.row(c)[e];
        const std::size_t pair = c * in_.channels + in_.channel_of[e];
        by_position[in_.position_of[e]] += value;
        pairs[pair] += value;
        triples[pair * in_.positions + in_.position_of[e]] += value;
      }
    }
    std::vector<std::size_t> seen;
    for (std::size_t p = 0; p < in_.positions; ++p)
      if (by_position[p] > kZero * std::ranges::max(by_position)) seen.push_back(p);
    Matrix by_tap(seen.size(), out_.channels * in_.channels);
    Matrix by_input(in_.channels, out_.channels * seen.size());
    for (std::size_t c = 0; c < out_.channels; ++c)
      for (std::size_t i = 0; i < in_.channels; ++i)
        for (std::size_t s = 0; s < seen.size(); ++s) {
          const float value = rows.row(c)[in_.element[i * in_.positions + seen[s]]];
          by_tap.row(s)[c * in_.channels + i] = value;
          by_input.row(i)[c * seen.size() + s] = value;
        }
    add(spectrum(gram(by_tap)));
    add(spectrum(gram(by_input)) / ins);

    double of_inputs = 0, of_outputs = 0;
    std::vector<double> column(out_.channels);
    for (std::size_t c = 0; c < out_.channels; ++c)
      of_inputs += participation(std::span(pairs).subspan(c * in_.channels, in_.channels));
    for (std::size_t i = 0; i < in_.channels; ++i) {
      for (std::size_t c = 0; c < out_.channels; ++c) column[c] = pairs[c * in_.channels + i];
      of_outputs += participation(column);
    }
    add(of_inputs / outs / ins);
    add(of_outputs / ins / outs);
    add(static_cast<double>(count_nonzero(pairs)) / outs / ins);

    const Field field(by_position, in_);
    first_ = field;
    add(field.positions);
    add(field.effective);
    double of_channel = 0;
    std::vector<double> read(in_.positions);
    for (std::size_t c = 0; c < out_.channels; ++c) {
      std::ranges::fill(read, 0.0);
      for (std::size_t i = 0; i < in_.channels; ++i)
        for (std::size_t p = 0; p < in_.positions; ++p)
          read[p] += triples[(c * in_.channels + i) * in_.positions + p];
      of_channel += static_cast<double>(count_nonzero(read));
    }
    add(of_channel / outs);
    const auto nonzero = static_cast<double>(count_nonzero(triples));
    add(ratio(nonzero, static_cast<double>(count_nonzero(pairs))));
    add(ratio(nonzero, outs * ins * field.positions));
    add(field.extent);
    add(field.spread);
    add(field.offset);
    add(field.axis_effective);
  }

  void at_the_corners() {
    std::vector<double> energies, spectra;
    for (const std::size_t corner : out_.corners()) {
      const Matrix rows = rows_at(corner);
      energies.push_back(ratio(energy(rows), middle_energy_));
      spectra.push_back(spectrum(gram(rows)) / static_cast<double>(out_.channels));
    }
    add(sum(energies) / static_cast<double>(energies.size()));
    add(std::ranges::min(energies));
    add(sum(spectra) / static_cast<double>(spectra.size()));
  }

  static double energy(const std::vector<Probe>& probes) {
    double all = 0;
    for (const Probe& probe : probes)
      for (const float value : probe) all += static_cast<double>(value) * value;
    return all;
  }
  // The energy of each element.
  static std::vector<double> energies(const std::vector<Probe>& probes) {
    std::vector<double> found;
    for (const Probe& probe : probes) {
      double all = 0;
      for (const float value : probe) all += static_cast<double>(value) * value;
      found.push_back(all);
    }
    return found;
  }

  // Traces by random vectors, as in LinearMap::jacobian_moments.
  void of_the_whole() {
    const std::vector<Probe> y = map_.apply(random_probes(map_.inputs(), seed_, 1));
    const double first = energy(y) / kProbes;
    const double second = energy(map_.apply_adjoint(y)) / kProbes;
    add(ratio(first * first, second) /
        static_cast<double>(std::min(map_.inputs(), map_.outputs())));
    const std::vector<double> inputs =
        energies(map_.apply_adjoint(random_probes(map_.outputs(), seed_, 2)));
    add(participation(inputs) / static_cast<double>(inputs.size()));
    const std::vector<double> outputs = energies(y);
    add(participation(outputs) / static_cast<double>(outputs.size()));
  }

  // x moved by one along an axis of a tensor.
  static std::vector<Probe> moved(const std::vector<Probe>& x, const Layout& layout,
                                  std::size_t axis) {
    const auto extent = static_cast<std::size_t>(layout.extents[axis]);
    std::size_t inner = 1;
    for (std::size_t a = axis + 1; a < layout.extents.size(); ++a)
      inner *= static_cast<std::size_t>(layout.extents[a]);
    std::vector<Probe> y(x.size());
    for (std::size_t e = 0; e < x.size(); ++e) {
      const std::size_t p = layout.position_of[e], i = p / inner % extent;
      const std::size_t to = p - i * inner + (i + 1) % extent * inner;
      y[layout.element[layout.channel_of[e] * layout.positions + to]] = x[e];
    }
    return y;
  }

  void of_shifts() {
    std::vector<Probe> x = random_probes(map_.inputs(), seed_, 3);
    for (std::size_t e = 0; e < x.size(); ++e) {
      std::size_t rest = in_.position_of[e];
      for (std::size_t a = in_.extents.size(); a-- > 0;) {
        const auto extent = in_.extents[a];
        const auto at = static_cast<std::int64_t>(rest) % extent;
        rest /= static_cast<std::size_t>(extent);
        if (extent > 2 * kBorder && (at < kBorder || at >= extent - kBorder)) x[e] = {};
      }
    }
    const std::vector<Probe> y = map_.apply(x);
    const double both = 2 * energy(y);
    std::vector<double> errors;
    double kept = 0;
    for (std::size_t a = 0; a < in_.extents.size(); ++a) {
      const std::vector<Probe> shifted = map_.apply(moved(x, in_, a));
      double least = 0;
      std::size_t best = 0;
      for (std::size_t b = 0; b < out_.extents.size(); ++b) {
        const std::vector<Probe> expected = moved(y, out_, b);
        double error = 0;
        for (std::size_t e = 0; e < y.size(); ++e)
          for (std::size_t n = 0; n < kProbes; ++n) {
            const double off = static_cast<double>(shifted[e][n]) - expected[e][n];
            error += off * off;
          }
        error = ratio(error, both);
        if (b == 0 || error < least) {
          least = error;
          best = b;
        }
      }
      errors.push_back(least);
      if (best < out_.axes.size() && out_.axes[best] == in_.axes[a]) kept += 1;
    }
    add(range(errors));
    add(errors.empty() ? 1 : kept / static_cast<double>(errors.size()));
  }

  void of_sizes() {
    const LinearMap::Moments moments = map_.jacobian_moments(seed_);
    const double effective = ratio(moments.first * moments.first, moments.second);
    double params = 0;
    for (const std::vector<float>& weight : map_.weights())
      params += static_cast<double>(weight.size());
    const auto elements = static_cast<double>(map_.blocks() * map_.free() * map_.taps());
    add(std::log(std::max(1.0, effective)));
    add(ratio(effective, params));
    add(std::log(std::max(1.0, std::min(params, elements))));
    add(std::log(static_cast<double>(map_.blocks())));
    add(std::log(static_cast<double>(map_.free())));
    add(std::log(static_cast<double>(map_.rows())));
    add(std::log(static_cast<double>(map_.taps())));
    add(std::log(std::max(1.0, ratio(static_cast<double>(map_.outputs() * map_.taps()), params))));
  }

  // What the middle of the output sees where the operator is applied several times, with other weights each time.
  void of_powers() {
    const bool fits = map_.input() == map_.output() && in_.axes == out_.axes;
    std::vector<Probe> y(map_.outputs());
    const std::vector<Probe> random = random_probes(out_.channels, seed_, 4);
    for (std::size_t c = 0; c < out_.channels; ++c)
      y[out_.element[c * out_.positions + out_.middle()]] = random[c];
    for (int times = 1; times <= kTimes; ++times) {
      if (fits) {
        if (times > 1) map_.sample_weights(seed_ + static_cast<std::uint64_t>(times));
        y = map_.apply_adjoint(y);
      }
      if (times == 1) continue;  // as at_the_middle
      const Field field = fits ? field_of(y) : first_;
      add(field.positions);
      add(field.effective);
      add(field.spread.least);
      add(field.axis_effective.least);
    }
  }

  Field field_of(const std::vector<Probe>& x) const {
    std::vector<double> by_position(in_.positions);
    const std::vector<double> by_element = energies(x);
    for (std::size_t e = 0; e < by_element.size(); ++e)
      by_position[in_.position_of[e]] += by_element[e];
    return Field(by_position, in_);
  }

  LinearMap map_;
  Layout in_, out_;
  std::uint64_t seed_;
  double middle_energy_ = 0;
  Field first_;
  std::vector<double> found_;
};

}  // namespace

const std::vector<MapFeature>& map_feature_list() {
  static const std::vector<MapFeature> kList{
      {"position_spectrum",
       "Participation ratio of the squared singular values of the map from the input to the "
       "channels of the middle "
       "output position, over the number of these channels."},
      {"position_rank", "Rank of that map, over the number of these channels."},
      {"tap_spectrum",
       "The same participation ratio of that map as a matrix of input positions by pairs of "
       "channels: how many patterns "
       "of positions it has."},
      {"input_spectrum",
       "The same of that map as a matrix of input channels by the rest, over the number of input "
       "channels."},
      {"mixing_in",
       "Participation ratio of the energy by input channel, mean over output channels, as a share "
       "of the input channels."},
      {"mixing_out",
       "Participation ratio of the energy by output channel, mean over input channels, as a share "
       "of the output channels."},
      {"mixing_pairs", "Share of the pairs of an output and an input channel that are connected."},
      {"field_positions",
       "Receptive field: input positions that the middle output position depends on."},
      {"field_effective", "Participation ratio of the energy by input position."},
      {"field_of_channel", "Receptive field of one output channel, mean."},
      {"field_of_pair", "Receptive field of a connected pair of channels, mean."},
      {"density",
       "Share of nonzero elements among the output channels, input channels and positions of the "
       "receptive field."},
      {"extent_least",
       "Extent of the receptive field along an axis, over the axis: the least of all axes."},
      {"extent_greatest", "The greatest."},
      {"spread_least",
       "Standard deviation of the energy along an axis, in positions: the least of all axes."},
      {"spread_greatest", "The greatest."},
      {"offset_least",
       "Distance of the energy's mean from the middle along an axis, in positions: the least of "
       "all axes."},
      {"offset_greatest", "The greatest."},
      {"axis_effective_least",
       "Participation ratio of the energy along an axis: the least of all axes."},
      {"axis_effective_greatest", "The greatest."},
      {"corner_response",
       "Energy at a corner of the output over that in the middle, mean over corners."},
      {"corner_response_least", "The least of all corners."},
      {"corner_spectrum", "position_spectrum at a corner, mean over corners."},
      {"map_spectrum",
       "Participation ratio of the squared singular values of the whole map, over the smaller of "
       "its two sizes; "
       "estimated by 8 random vectors."},
      {"input_evenness",
       "Participation ratio of the energy by input element, as a share; estimated."},
      {"output_evenness",
       "Participation ratio of the energy by output element, as a share; estimated."},
      {"equivariance_least",
       "Relative squared difference between the result of a shifted input and the best shifted "
       "result, by axis of the "
       "input, borders left out: the least of all axes, 0 for a convolution."},
      {"equivariance_greatest", "The greatest."},
      {"axes_kept",
       "Share of the axes of the input along which the best shifted result is shifted along the "
       "same dimension; 0 where "
       "height and width of the result are exchanged."},
      {"jacobian_effective",
       "Logarithm of the participation ratio of the squared singular values of dW/dw, the Jacobian "
       "of the map by the "
       "weights: how many directions training moves the map in; estimated by 4 random directions."},
      {"jacobian_share", "The same, not its logarithm, over the number of parameters."},
      {"dimension_bound",
       "Logarithm of a bound on the dimension of the set of maps: the smaller of the parameters "
       "and the elements of W."},
      {"log_blocks",
       "Logarithm of the number of positions and channels that have a matrix W of their own."},
      {"log_free", "Logarithm of the rows of W: outputs that read the same elements."},
      {"log_rows", "Logarithm of the number of outputs that share a row of W."},
      {"log_taps", "Logarithm of the columns of W: elements that an output reads."},
      {"log_reuse", "Logarithm of the products for each parameter."},
      {"second_positions",
       "field_positions of the operator applied twice, with other weights each time."},
      {"second_effective", "field_effective of the same."},
      {"second_spread", "spread_least of the same."},
      {"second_axis_effective", "axis_effective_least of the same."},
      {"third_positions", "field_positions of the operator applied three times."},
      {"third_effective", "field_effective of the same."},
      {"third_spread", "spread_least of the same."},
      {"third_axis_effective", "axis_effective_least of the same."},
  };
  return kList;
}

std::vector<double> map_features(const Operator& op, const Values& values,
                                 const Positions& positions, std::uint64_t seed) {
  std::vector<double> found = Features(op, values, positions, seed).all();
  ensure(found.size() == map_feature_list().size(), "map_features: not one value a name");
  return found;
}

}  // namespace syno
