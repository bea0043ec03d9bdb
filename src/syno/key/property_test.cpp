// Soundness by brute force: operators with equal keys are the same operator.
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "syno/graph/canonical.h"
#include "syno/interp/random_graph.h"
#include "syno/key/key.h"
#include "syno/key/oracle_test.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

// Counts over a population: operators by structure, keys, classes (same operator), fallbacks.
struct Census {
  std::size_t operators = 0;
  std::size_t keys = 0;
  std::size_t classes = 0;
  std::size_t fallbacks = 0;
};

// Groups operators of one specification by key and by truth. Fails where a key holds two different
// operators.
class Checker {
 public:
  void add(const Operator& op, const Values& values) {
    if (!seen_.insert(op.structure()).second) return;
    ++census_.operators;
    const oracle::TermSet terms = oracle::term_set(op, values);
    const Hash128 key = semantic_key(op, {values});
    const std::string form = key_normal_form(op, values);
    const bool fallback = form.starts_with("fallback");
    census_.fallbacks += fallback;
    // The key is put together from sections, the text is that of the operator as a whole.
    const auto [of_form, new_form] = key_of_form_.try_emplace(form, key);
    const auto [of_key, new_key] = form_of_key_.try_emplace(key, form);
    EXPECT_TRUE(fallback || of_form->second == key) << "two keys for one form:\n"
                                                    << op.text() << form;
    EXPECT_TRUE(fallback || of_key->second == form) << "one key for two forms:\n"
                                                    << op.text() << form;
    auto& bucket = classes_[oracle::invariant(terms)];
    auto found = std::find_if(bucket.begin(), bucket.end(), [&](const Class& known) {
      return oracle::same_operator(known.terms, terms);
    });
    if (found == bucket.end()) {
      bucket.push_back({terms, op.text(), static_cast<int>(census_.classes++), {}});
      found = bucket.end() - 1;
    }
    found->keys.emplace(key, op.text());
    const auto [place, fresh] = class_of_key_.emplace(key, found->number);
    texts_.emplace(key, op.text());
    census_.keys += fresh;
    EXPECT_EQ(place->second, found->number)
        << "one key for two operators:\n"
        << texts_.at(key) << op.text() << key_normal_form(op, values);
  }

  const Census& census() const { return census_; }

  // Up to `count` pairs that are the same operator with different keys.
  void print_leaks(const VariablesPtr& variables, const Values& values, int count) const {
    for (const auto& [hash, bucket] : classes_) {
      for (const Class& known : bucket) {
        if (known.keys.size() < 2 || count-- <= 0) continue;
        auto it = known.keys.begin();
        for (int i = 0; i < 2; ++i, ++it)
          std::cout << it->second
                    << key_normal_form(Operator::parse(it->second).in_table(variables), values)
                    << "\n";
        std::cout << "-----\n";
      }
    }
  }

 private:
  struct Class {
    oracle::TermSet terms;
    std::string text;
    int number;
    std::map<Hash128, std::string> keys;
  };
  Census census_;
  std::set<Hash128> seen_;
  std::map<std::uint64_t, std::vector<Class>> classes_;
  std::map<Hash128, int> class_of_key_;
  std::map<Hash128, std::string> texts_;
  std::map<std::string, Hash128> key_of_form_;
  std::map<Hash128, std::string> form_of_key_;
};

// All operators of a small specification.
struct Space {
  VariablesPtr variables;
  Values values;
  std::string output;
  std::string input;
  std::vector<std::string> reduces;
  std::vector<std::string> blocks;
  std::vector<std::string> strides;
  std::vector<int> shifts;
  int depth = 4;
  std::size_t weights = 1;
  std::size_t frontier = 4;
  bool views = true;
};

class Enumerator {
 public:
  Enumerator(const Space& space, Checker& checker) : space_(space), checker_(checker) {
    input_ = parse_shape(space.input, *space.variables);
    visit(Graph(space.variables, parse_shape(space.output, *space.variables)));
  }

 private:
  Size size(const std::string& text) const { return Size::parse(text, *space_.variables); }

  void visit(const Graph& graph) {
    for (const Coordinate& coordinate : graph.coordinates()) {
      const auto value = coordinate.extent.evaluate(space_.values);
      if (!value || *value > 12) return;
    }
    if (!seen_.insert(structure_hash(graph)).second) return;
    for (const auto& match : matchings(graph, input_, {}))
      checker_.add(Operator(graph, input_, match).in_table(space_.variables), space_.values);
    if (graph.depth() >= space_.depth) return;
    for (const std::string& text : space_.reduces) {
      if (graph.frontier().size() < space_.frontier) take(graph, Step::reduce(size(text)));
    }
    for (const CoordinateId i : graph.frontier()) {
      if (space_.views) {
        for (const std::string& text : space_.blocks) {
          const auto extent = graph.extent(i).evaluate(space_.values).value();
          const auto block = size(text).evaluate(space_.values).value();
          if (extent > block && extent % block == 0) take(graph, Step::merge(i, size(text)));
        }
        for (const std::string& text : space_.strides) take(graph, Step::stride(i, size(text)));
        for (const int amount : space_.shifts) take(graph, Step::shift(i, amount));
      }
      take(graph, Step::expand(i));
      for (const CoordinateId j : graph.frontier()) {
        if (i == j) continue;
        if (space_.views) take(graph, Step::split(i, j));
        take(graph, Step::unfold(i, j));
      }
    }
    if (graph.weights().size() < space_.weights) contract(graph, 0, {});
  }

  void take(const Graph& graph, const Step& step) {
    Graph next = graph;
    next.apply(step);
    visit(next);
  }

  void contract(const Graph& graph, std::size_t i, const std::vector<WeightDim>& dims) {
    if (i == graph.frontier().size()) {
      if (!dims.empty()) take(graph, Step::contract(dims));
      return;
    }
    contract(graph, i + 1, dims);
    const CoordinateId id = graph.frontier()[i];
    const WeightRole leave = graph.weight_count(id) > 0 ? WeightRole::kJoin : WeightRole::kDrop;
    for (const WeightRole role : {WeightRole::kKeep, leave}) {
      std::vector<WeightDim> more = dims;
      more.push_back({id, role});
      contract(graph, i + 1, more);
    }
  }

  const Space& space_;
  Checker& checker_;
  Shape input_;
  std::set<Hash128> seen_;
};

void print(const char* name, const Census& census) {
  std::cout << name << ": " << census.operators << " operators, " << census.classes << " classes, "
            << census.keys << " keys, " << census.fallbacks << " fallbacks\n";
}

// SYNO_LEAKS=n prints up to n pairs that are one operator with two keys.
Census check_space(const char* name, const Space& space) {
  Checker checker;
  Enumerator(space, checker);
  print(name, checker.census());
  if (const char* leaks = std::getenv("SYNO_LEAKS"))
    checker.print_leaks(space.variables, space.values, std::atoi(leaks));
  return checker.census();
}

const VariablesPtr kFewVariables = Variables::make({"H", "C", "D", "k", "s"});

Values few_values(const char* binding) {
  return Binding::parse(binding).resolve(*kFewVariables);
}

// The numbers of keys are a record, not a goal: fewer (down to the number of classes) is better,
// more is a leak.
void expect_census(const Census& census, std::size_t operators, std::size_t classes,
                   std::size_t keys) {
  EXPECT_EQ(census.operators, operators);
  EXPECT_EQ(census.classes, classes);
  EXPECT_LE(census.keys, keys);
  EXPECT_EQ(census.fallbacks, 0U);
}

TEST(KeyProperty, LinesOfSix) {
  const Space space{kFewVariables,
                    few_values("H=6, C=4, D=2, k=3, s=2"),
                    "[H]",
                    "[H]",
                    {"k", "s"},
                    {"s", "k"},
                    {"s"},
                    {1},
                    4,
                    1,
                    3};
  expect_census(check_space("lines of six", space), 767, 350, 353);
}

TEST(KeyProperty, LinesOfFour) {
  const Space space{kFewVariables,
                    few_values("H=4, C=4, D=2, k=3, s=2"),
                    "[H]",
                    "[H]",
                    {"k", "s"},
                    {"s"},
                    {},
                    {1, -1},
                    5,
                    1,
                    3};
  expect_census(check_space("lines of four", space), 5346, 1119, 1157);
}

TEST(KeyProperty, LinesOfEight) {
  const Space space{kFewVariables,
                    few_values("H=8, C=4, D=2, k=4, s=2"),
                    "[H]",
                    "[H]",
                    {"s"},
                    {"s", "k"},
                    {},
                    {1},
                    5,
                    1,
                    3};
  expect_census(check_space("lines of eight", space), 2521, 805, 811);
}

TEST(KeyProperty, LinearWithTwoWeights) {
  const Space space{kFewVariables,
                    few_values("H=4, C=4, D=6, k=3, s=2"),
                    "[D: unordered]",
                    "[C: unordered]",
                    {"C", "s"},
                    {"s"},
                    {},
                    {1},
                    5,
                    2,
                    3};
  expect_census(check_space("linear", space), 3391, 972, 984);
}

TEST(KeyProperty, OrderedLinearWithTwoWeights) {
  const Space space{kFewVariables,
                    few_values("H=4, C=4, D=6, k=3, s=2"),
                    "[D]",
                    "[C]",
                    {"C", "s"},
                    {"s", "k"},
                    {},
                    {1},
                    4,
                    2,
                    3};
  expect_census(check_space("ordered linear", space), 407, 213, 215);
}

TEST(KeyProperty, ConvolutionsOfOneDimension) {
  const Space space{kFewVariables,
                    few_values("H=4, C=2, D=2, k=3, s=2"),
                    "[D: unordered, H]",
                    "[C: unordered, H]",
                    {"C", "k"},
                    {"s"},
                    {},
                    {1},
                    4,
                    1,
                    4};
  expect_census(check_space("conv1d", space), 541, 237, 239);
}

TEST(KeyProperty, Squares) {
  const Space space{kFewVariables,
                    few_values("H=4, C=2, D=2, k=3, s=2"),
                    "[H, H]",
                    "[H, H]",
                    {"k", "s"},
                    {"s"},
                    {},
                    {1},
                    4,
                    1,
                    3};
  expect_census(check_space("squares", space), 2750, 1394, 1394);
}

// Operators near `op`, of the same shapes: other amounts, sides exchanged, cyclic shifts put in,
// weights that hold less, another matching.
class Mutator {
 public:
  Mutator(const Operator& op, std::uint64_t seed) : op_(op), random_(seed, 77) {}

  std::optional<Operator> next() {
    Graph graph(op_.variables(), op_.output());
    std::vector<CoordinateId> renamed(op_.graph().coordinates().size(), kNoCoordinate);
    for (std::size_t d = 0; d < op_.output().size(); ++d) renamed[d] = static_cast<CoordinateId>(d);
    const auto to = [&](CoordinateId& id) {
      if (id != kNoCoordinate) id = renamed[static_cast<std::size_t>(id)];
    };
    try {
      for (const Step& original : op_.graph().steps()) {
        Step step = original;
        for (CoordinateId& id : step.in) to(id);
        for (WeightDim& dim : step.dims) to(dim.coordinate);
        mutate(graph, step);
        const Step applied = graph.apply(step);
        for (std::size_t i = 0; i < 2; ++i) {
          if (original.out[i] != kNoCoordinate)
            renamed[static_cast<std::size_t>(original.out[i])] = applied.out[i];
        }
      }
      std::vector<CoordinateId> match = op_.match();
      for (CoordinateId& id : match) to(id);
      if (random_.below(4) == 0 && match.size() > 1)
        std::swap(match[random_.below(match.size())], match[random_.below(match.size())]);
      return Operator(graph, op_.input(), match).in_table(op_.variables());
    } catch (const UserError&) {
      return std::nullopt;  // the mutation does not fit the rest
    }
  }

 private:
  void mutate(Graph& graph, Step& step) {
    if (random_.below(3) != 0) return;
    switch (step.primitive) {
      case Primitive::kShift: step.amount = static_cast<int>(random_.below(5)) - 2; break;
      case Primitive::kSplit: std::swap(step.in[0], step.in[1]); break;
      case Primitive::kUnfold:
        if (graph.extent(step.in[0]) == graph.extent(step.in[1]) && random_.below(2) == 0) {
          std::swap(step.in[0], step.in[1]);
        } else {
          step.in[random_.below(2)] = turned(graph, step.in[random_.below(2)]);
        }
        break;
      case Primitive::kMerge:
      case Primitive::kStride: step.in[0] = turned(graph, step.in[0]); break;
      case Primitive::kContraction:
        if (step.dims.size() > 1) {
          const std::size_t place = random_.below(step.dims.size());
          if (step.dims[place].role == WeightRole::kKeep)
            step.dims.erase(step.dims.begin() + static_cast<std::ptrdiff_t>(place));
        }
        break;
      case Primitive::kExpand:
      case Primitive::kReduce: break;
    }
  }

  CoordinateId turned(Graph& graph, CoordinateId id) {
    return graph.apply(Step::shift(id, random_.below(2) == 0 ? 1 : -1)).out[0];
  }

  const Operator& op_;
  CounterRandom random_;
};

TEST(KeyProperty, RandomOperatorsAndTheirNeighbours) {
  RandomOptions options;
  options.max_terms = 1200;
  options.max_elements = 600;
  options.max_steps = 8;
  options.unordered = 0.35;
  options.wide_windows = 0.3;
  options.causal_windows = 0.2;
  options.extents = {1, 2, 3, 4};
  Census total;
  const char* seeds = std::getenv("SYNO_KEY_SEEDS");
  const std::uint64_t count = seeds != nullptr ? std::strtoull(seeds, nullptr, 10) : 250;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomOperator sampled = random_operator(seed, options);
    Checker checker;
    checker.add(sampled.op, sampled.values);
    Mutator mutator(sampled.op, seed);
    for (int i = 0; i < 16; ++i) {
      if (const auto neighbour = mutator.next()) checker.add(*neighbour, sampled.values);
    }
    total.operators += checker.census().operators;
    total.classes += checker.census().classes;
    total.keys += checker.census().keys;
    total.fallbacks += checker.census().fallbacks;
    if (const char* leaks = std::getenv("SYNO_LEAKS"))
      checker.print_leaks(sampled.op.variables(), sampled.values, std::atoi(leaks));
  }
  print("random", total);
  EXPECT_GT(total.operators, count * 5);
  EXPECT_GT(total.operators, total.classes);
}

}  // namespace
}  // namespace syno
