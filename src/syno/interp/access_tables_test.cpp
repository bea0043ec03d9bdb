#include "syno/interp/access_tables.h"

#include <gtest/gtest.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// The element of the table where the variables have the values `at`.
std::int64_t look_up(const AccessTable& table, const AccessTables& tables,
                     const std::vector<std::int64_t>& at) {
  std::int64_t flat = 0;
  for (const int variable : table.variables) {
    const auto v = static_cast<std::size_t>(variable);
    flat = flat * tables.extents[v] + at[v];
  }
  return table.index[static_cast<std::size_t>(flat)];
}

Tensor<std::int64_t> counted(std::vector<std::int64_t> shape, std::int64_t seed) {
  Tensor<std::int64_t> tensor;
  tensor.shape = std::move(shape);
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) elements *= extent;
  for (std::int64_t i = 0; i < elements; ++i) tensor.data.push_back((i * 37 + seed * 11) % 19 - 9);
  return tensor;
}

// The operator's value by its tables alone.
std::vector<std::int64_t> value(const AccessTables& tables, const Tensor<std::int64_t>& x,
                                const std::vector<Tensor<std::int64_t>>& weights) {
  std::vector<std::int64_t> y;
  std::vector<std::int64_t> at(tables.extents.size(), 0);
  std::int64_t terms = 1;
  for (std::size_t v = static_cast<std::size_t>(tables.outputs); v < at.size(); ++v)
    terms *= tables.extents[v];
  bool more = true;
  while (more) {
    std::int64_t sum = 0;
    for (std::int64_t t = 0; t < terms; ++t) {
      std::int64_t rest = t;
      for (std::size_t v = at.size(); v-- > static_cast<std::size_t>(tables.outputs);) {
        at[v] = rest % tables.extents[v];
        rest /= tables.extents[v];
      }
      const std::int64_t element = look_up(tables.data, tables, at);
      std::int64_t term = element < 0 ? 0 : x.data[static_cast<std::size_t>(element)];
      for (std::size_t w = 0; w < weights.size(); ++w) {
        const std::int64_t place = look_up(tables.weights[w], tables, at);
        term *= place < 0 ? 0 : weights[w].data[static_cast<std::size_t>(place)];
      }
      for (const AccessTable& mask : tables.masks)
        if (look_up(mask, tables, at) < 0) term = 0;
      sum += term;
    }
    y.push_back(sum);
    more = false;
    for (auto v = static_cast<std::size_t>(tables.outputs); v-- > 0 && !more;) {
      more = ++at[v] < tables.extents[v];
      if (!more) at[v] = 0;
    }
  }
  return y;
}

TEST(AccessTables, GiveTheValueOfRandomOperators) {
  int masked = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomOptions options;
    options.batch = seed % 2 == 0;
    options.causal_windows = 0.2;
    const RandomOperator random = random_operator(seed, options);
    const Values& values = random.values;
    const OperatorShapes shapes = operator_shapes(random.op, values);
    const Tensor<std::int64_t> x = counted(shapes.input, 1);
    std::vector<Tensor<std::int64_t>> weights;
    for (const auto& shape : shapes.weights)
      weights.push_back(counted(shape, static_cast<std::int64_t>(weights.size()) + 2));
    const AccessTables tables = access_tables(random.op, values);
    masked += tables.masks.empty() ? 0 : 1;
    ASSERT_EQ(value(tables, x, weights), interpret(random.op, values, x, weights).data)
        << "seed " << seed << "\n"
        << random.op.text();
  }
  EXPECT_GT(masked, 0) << "no operator had a window that nothing is read through";
}

TEST(AccessTables, RefuseTablesThatAreTooLarge) {
  const RandomOperator random = random_operator(1, {});
  EXPECT_THROW(access_tables(random.op, random.values, 0), UserError);
}

}  // namespace
}  // namespace syno
