// The reference interpreter, which every emitter is compared with.
#include <benchmark/benchmark.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/zoo_texts_test.h"

namespace {

syno::Tensor<double> filled(const std::vector<std::int64_t>& shape) {
  syno::Tensor<double> tensor = syno::zeros<double>(shape);
  for (std::size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = static_cast<double>(i % 7) - 3;
  return tensor;
}

/// Items are multiply-adds of a 3x3 convolution of 8 channels on 16 x 16.
void interpret_conv2d(benchmark::State& state) {
  const syno::Operator op = syno::Operator::parse(syno::kConv2d.text);
  const syno::Values values =
      syno::Binding::parse("N=1, C_in=8, C_out=8, H=16, W=16, k=3").resolve(*op.variables());
  const syno::OperatorShapes shapes = syno::operator_shapes(op, values);
  const syno::Tensor<double> x = filled(shapes.input);
  std::vector<syno::Tensor<double>> weights;
  for (const auto& shape : shapes.weights) weights.push_back(filled(shape));
  for (auto _ : state) benchmark::DoNotOptimize(syno::interpret(op, values, x, weights));
  state.SetItemsProcessed(state.iterations() * 8 * 8 * 16 * 16 * 9);
}
BENCHMARK(interpret_conv2d)->Unit(benchmark::kMillisecond);

void gradients_of_conv2d(benchmark::State& state) {
  const syno::Operator op = syno::Operator::parse(syno::kConv2d.text);
  const syno::Values values =
      syno::Binding::parse("N=1, C_in=8, C_out=8, H=16, W=16, k=3").resolve(*op.variables());
  const syno::OperatorShapes shapes = syno::operator_shapes(op, values);
  const syno::Tensor<double> x = filled(shapes.input);
  const syno::Tensor<double> dy = filled(shapes.output);
  std::vector<syno::Tensor<double>> weights;
  for (const auto& shape : shapes.weights) weights.push_back(filled(shape));
  for (auto _ : state) benchmark::DoNotOptimize(syno::gradients(op, values, x, weights, dy));
  state.SetItemsProcessed(state.iterations() * 8 * 8 * 16 * 16 * 9);
}
BENCHMARK(gradients_of_conv2d)->Unit(benchmark::kMillisecond);

}  // namespace
