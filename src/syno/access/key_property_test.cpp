// Soundness by brute force: operators with equal keys are the same operator.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/access/key.h"
#include "syno/access/key_oracle_test.h"
#include "syno/access/random_graph.h"
#include "syno/graph/canonical.h"

namespace syno {
namespace {

// Counts over a population: operators by structure, keys, classes (same operator), fallbacks.
struct Census {
  std::size_t operators = 0;
  std::size_t keys = 0;
  std::size_t classes = 0;
  std::size_t fallbacks = 0;
};

// Groups operators of one specification by key and by truth. Fails where a key holds two different operators.
class Judge {
 public:
  void add(const Operator& op, const Values& values) {
    if (!seen_.insert(op.structure()).second) return;
    ++census_.operators;
    const oracle::TermSet terms = oracle::term_set(op, values);
    const Hash128 key = semantic_key(op, {values});
    census_.fallbacks += key_normal_form(op, values).starts_with("fallback");
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
  Enumerator(const Space& space, Judge& judge) : space_(space), judge_(judge) {
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
      judge_.add(Operator(graph, input_, match).in_table(space_.variables), space_.values);
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

  void contract(const Graph& graph, std::size_t i, const std::vector<SharedDim>& dims) {
    if (i == graph.frontier().size()) {
      if (!dims.empty()) take(graph, Step::contract(dims));
      return;
    }
    contract(graph, i + 1, dims);
    const CoordinateId id = graph.frontier()[i];
    const ShareRole leave = graph.share_count(id) > 0 ? ShareRole::kJoin : ShareRole::kDrop;
    for (const ShareRole role : {ShareRole::kKeep, leave}) {
      std::vector<SharedDim> more = dims;
      more.push_back({id, role});
      contract(graph, i + 1, more);
    }
  }

  const Space& space_;
  Judge& judge_;
  Shape input_;
  std::set<Hash128> seen_;
};

Values values_of(const VariablesPtr& variables, const char* binding) {
  return Binding::parse(binding).resolve(*variables);
}

void print(const char* name, const Census& census) {
  std::cout << name << ": " << census.operators << " operators, " << census.classes << " classes, "
            << census.keys << " keys, " << census.fallbacks << " fallbacks\n";
}

void judge_space(const char* name, const Space& space) {
  Judge judge;
  Enumerator(space, judge);
  print(name, judge.census());
  if (std::getenv("SYNO_LEAKS"))
    judge.print_leaks(space.variables, space.values, atoi(std::getenv("SYNO_LEAKS")));
}

const VariablesPtr kVariables = Variables::make({"H", "C", "D", "k", "s"});

TEST(KeyProperty, OneDimensionWithViewsAndAWindow) {
  judge_space("H=6", {kVariables,
                      values_of(kVariables, "H=6, C=4, D=2, k=3, s=2"),
                      "[H]",
                      "[H]",
                      {"k", "s"},
                      {"s", "k"},
                      {"s"},
                      {1},
                      4,
                      1,
                      3});
}
TEST(KeyProperty, OneDimensionOfFour) {
  judge_space("H=4", {kVariables,
                      values_of(kVariables, "H=4, C=4, D=2, k=3, s=2"),
                      "[H]",
                      "[H]",
                      {"k", "s"},
                      {"s"},
                      {},
                      {1, -1},
                      5,
                      1,
                      3});
}
TEST(KeyProperty, OneDimensionOfEight) {
  judge_space("H=8", {kVariables,
                      values_of(kVariables, "H=8, C=4, D=2, k=4, s=2"),
                      "[H]",
                      "[H]",
                      {"s"},
                      {"s", "k"},
                      {},
                      {1},
                      5,
                      1,
                      3});
}
TEST(KeyProperty, Linear) {
  judge_space("linear", {kVariables,
                         values_of(kVariables, "H=4, C=4, D=6, k=3, s=2"),
                         "[D: unordered]",
                         "[C: unordered]",
                         {"C", "s"},
                         {"s"},
                         {},
                         {1},
                         5,
                         2,
                         3});
}
TEST(KeyProperty, LinearOrdered) {
  judge_space("linear ordered", {kVariables,
                                 values_of(kVariables, "H=4, C=4, D=6, k=3, s=2"),
                                 "[D]",
                                 "[C]",
                                 {"C", "s"},
                                 {"s", "k"},
                                 {},
                                 {1},
                                 5,
                                 2,
                                 3});
}
TEST(KeyProperty, ConvolutionOfOneDimension) {
  judge_space("conv1d", {kVariables,
                         values_of(kVariables, "H=4, C=2, D=2, k=3, s=2"),
                         "[D: unordered, H]",
                         "[C: unordered, H]",
                         {"C", "k"},
                         {"s"},
                         {},
                         {1},
                         4,
                         1,
                         4});
}
TEST(KeyProperty, Square) {
  judge_space("square", {kVariables,
                         values_of(kVariables, "H=4, C=2, D=2, k=3, s=2"),
                         "[H, H]",
                         "[H, H]",
                         {"k", "s"},
                         {"s"},
                         {},
                         {1},
                         4,
                         1,
                         3});
}

}  // namespace
}  // namespace syno
