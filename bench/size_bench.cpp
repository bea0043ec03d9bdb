// Sizes: monomials of variables, and the interned table of a search.
#include <benchmark/benchmark.h>

#include "syno/space/size_space.h"

#include "population.h"

namespace {

using syno::Size;
using syno::bench::resnet18;

const std::vector<Size>& some_sizes() {
  static const std::vector<Size> sizes = [] {
    std::vector<Size> all;
    for (const char* text : {"C_in", "k_1", "k_2", "s", "g", "g^-1*C_in", "s^-1*C_in", "g*s",
                             "g^-1*C_out", "s*H", "H", "k_1*H"})
      all.push_back(Size::parse(text, *resnet18().variables()));
    return all;
  }();
  return sizes;
}

/// Items are products.
void multiply_sizes(benchmark::State& state) {
  for (auto _ : state) {
    for (const Size& a : some_sizes()) {
      for (const Size& b : some_sizes()) benchmark::DoNotOptimize(a * b);
    }
  }
  state.SetItemsProcessed(
      static_cast<std::int64_t>(state.iterations() * some_sizes().size() * some_sizes().size()));
}
BENCHMARK(multiply_sizes);

/// Items are sizes under one binding.
void evaluate_sizes(benchmark::State& state) {
  const syno::Values& values = resnet18().bindings().front();
  for (auto _ : state) {
    for (const Size& size : some_sizes()) benchmark::DoNotOptimize(size.extent(values));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * some_sizes().size()));
}
BENCHMARK(evaluate_sizes);

/// Items are products of numbered sizes, as a search takes them.
void multiply_interned(benchmark::State& state) {
  syno::SizeSpace space(resnet18());
  std::vector<syno::SizeId> ids;
  for (const Size& size : some_sizes()) ids.push_back(space.intern(size));
  for (auto _ : state) {
    for (const syno::SizeId a : ids) {
      for (const syno::SizeId b : ids) benchmark::DoNotOptimize(space.product(a, b));
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * ids.size() * ids.size()));
}
BENCHMARK(multiply_interned);

void parse_size(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Size::parse("s^-1*C_in", *resnet18().variables()));
}
BENCHMARK(parse_size);

}  // namespace
