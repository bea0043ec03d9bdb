// What several threads may share: operators, specifications, sets of rules, plans and enumerated spaces. Threads that use
// them at once get what one thread gets. Built with -fsanitize=thread this is the test for data races (tools/check_all.sh).
#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/pytorch/pytorch.h"
#include "syno/emit/triton/triton.h"
#include "syno/emit/tvm/tvm.h"
#include "syno/explain/explain.h"
#include "syno/explain/rule_check.h"
#include "syno/explain/why_not.h"
#include "syno/graph/draw.h"
#include "syno/interp/interpreter.h"
#include "syno/interp/moments.h"
#include "syno/interp/random_graph.h"
#include "syno/key/key.h"
#include "syno/notation/formula.h"
#include "syno/notation/parse.h"
#include "syno/plan/plan.h"
#include "syno/quality/quality.h"
#include "syno/rules/catalogue.h"
#include "syno/space/accept.h"
#include "syno/space/enumerate.h"
#include "syno/space/sampling.h"
#include "syno/space/tree.h"
#include "syno/space/walks.h"
#include "syno/spec/presets.h"
#include "syno/spec/specification.h"
#include "syno/trials/random_trials.h"

namespace syno {
namespace {

constexpr std::size_t kThreads = 8;

Specification small() {
  SpecificationSource source;
  source.input = "[N, C_in: unordered, H]";
  source.output = "[N, C_out: unordered, H]";
  source.primary = {"N: 0", "C_in: 2", "C_out: 2", "H: 1"};
  source.coefficient = {"k=3: 2", "s=2: 1"};
  source.bindings = {Binding::parse("N=1, C_in=4, C_out=8, H=6"),
                     Binding::parse("N=1, C_in=8, C_out=8, H=4")};
  source.passed_through = {{0, 0}};
  source.limits.max_depth = 6;
  return Specification(source);
}

using Question = std::function<std::string()>;

// Asks each question once alone, then all of them from several threads at once, each thread beginning with another.
void expect_the_same_from_threads(const std::vector<Question>& questions) {
  std::vector<std::string> expected;
  for (const Question& question : questions) expected.push_back(question());
  std::vector<std::string> wrong(kThreads);
  std::atomic<std::size_t> ready{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (++ready; ready < kThreads;) std::this_thread::yield();
      for (std::size_t i = 0; i < questions.size(); ++i) {
        const std::size_t number = (i + t * questions.size() / kThreads) % questions.size();
        const std::string answer = questions[number]();
        if (answer != expected[number])
          wrong[t] += "question " + std::to_string(number) + ": " + answer + "\n";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
}

template <class T>
std::string text_of(const std::vector<T>& numbers) {
  std::string text;
  for (const T& number : numbers) text += std::to_string(number) + " ";
  return text;
}

Tensor<double> counted(const std::vector<std::int64_t>& shape) {
  Tensor<double> tensor = zeros<double>(shape);
  double next = 1;
  for (double& element : tensor.data) element = next += 0.5;
  return tensor;
}

TEST(Threads, ShareOperators) {
  std::vector<RandomOperator> randoms;
  RandomOptions options;
  options.max_terms = 500;
  options.min_weights = 1;
  for (std::uint64_t seed = 0; seed < 12; ++seed) randoms.push_back(random_operator(seed, options));
  std::vector<Plan> plans_of_all;
  for (const RandomOperator& random : randoms)
    plans_of_all.push_back(plan(random.op, random.values));
  std::vector<Question> questions;
  for (std::size_t i = 0; i < randoms.size(); ++i) {
    const Operator& op = randoms[i].op;
    const Values& values = randoms[i].values;
    const Plan& shared = plans_of_all[i];
    questions.emplace_back([&op] { return op.text() + op.structure().hex() + to_dot(op); });
    questions.emplace_back([&op] { return Operator::parse(op.text()).text(); });
    questions.emplace_back([&op] { return formula(op, false) + formula(op, true); });
    questions.emplace_back([&, values] { return plan(op, values).text(); });
    questions.emplace_back([&, values] {
      std::string text;
      for (const Plan& one : plans(op, values, {.limit = 5, .fold_weights = true}))
        text += one.text();
      return text;
    });
    questions.emplace_back([&, values] { return std::to_string(macs(op, values)); });
    questions.emplace_back([&, values] { return semantic_key(op, {values}).hex(); });
    questions.emplace_back([&, values] { return key_normal_form(op, values); });
    questions.emplace_back([&, values] { return std::to_string(mean_square(op, values)); });
    questions.emplace_back([&, values] {
      const OperatorShapes shapes = operator_shapes(op, values);
      std::vector<Tensor<double>> weights;
      for (const auto& shape : shapes.weights) weights.push_back(counted(shape));
      const Tensor<double> x = counted(shapes.input);
      const Tensor<double> y = interpret(op, values, x, weights);
      return text_of(y.data) + text_of(gradients(op, values, x, weights, y).x.data);
    });
    questions.emplace_back([&shared] {
      return shared.text() + emit_pytorch(shared, {}).text + emit_cpp(shared, {}).text;
    });
    questions.emplace_back(
        [&shared] { return emit_tvm(shared, {}).text + emit_triton(shared, {}).text; });
  }
  questions.emplace_back([] {
    return parse_formula("y[o:C_out,h:H] = sum(i:C_in, a:k) x[i,h+a-k/2] * w[o,i,a]",
                         {"[C_in, H]", "", Binding::parse("k=3").values()})
        .op.text();
  });
  expect_the_same_from_threads(questions);
}

TEST(Threads, ShareASpecificationItsRulesAndASpace) {
  const Specification spec = small();
  const RuleSet rules;
  EnumerateOptions enumeration;
  enumeration.max_depth = 5;
  enumeration.max_nodes = 20'000;
  enumeration.threads = 2;
  // So that one thread asks how much the others hold.
  enumeration.max_memory = std::int64_t{1} << 40;
  const Space space = enumerate_space(spec, enumeration);
  ASSERT_GT(space.operator_count(), 10U);
  const Operator last = space.op(spec, space.operator_count() - 1);
  const std::vector<Question> questions{
      [&] { return spec.text() + spec.key().hex() + rules.version(); },
      [&] { return enumerate_space(spec, enumeration).signature().hex(); },
      [&] {
        EnumerateOptions one = enumeration;
        one.threads = 1;
        return enumerate_space(spec, one).signature().hex();
      },
      [&] {
        std::string text;
        for (std::size_t i = 0; i < space.operator_count(); ++i)
          text += space.op(spec, i).structure().hex();
        return text + space.signature().hex();
      },
      [&] { return text_of(sample_operators(space, spec, 5, 0, Stratify::kMacs, 2)); },
      [&] {
        std::string text;
        OperatorChecker checker(spec);
        for (std::size_t i = 0; i < space.operator_count(); ++i)
          text += std::string(checker.rejection_reason(space.op(spec, i))) + ",";
        return text;
      },
      [&] { return std::to_string(total_macs(last, spec)) + last.text(); },
      [&] {
        std::string text;
        for (const RejectionReason& rejection : rejections(last, spec, rules))
          text += rejection.text;
        return text;
      },
      [&] { return explain(last, spec, rules).key.hex(); },
      [&] { return std::to_string(why_not(last, spec, rules, {2'000, 60}).admitted); },
      [&] {
        Tree tree(spec, rules, 4, &space, BoundMode::kFull);
        std::string text;
        for (const TreeNode& child : tree.children(tree.root())) text += child.fingerprint.hex();
        return text;
      },
      [&] {
        WalkOptions walking;
        walking.walks = 64;
        walking.width = 16;
        walking.threads = 2;
        std::string text;
        for (const WalkedOperator& walked : random_walks(spec, walking).operators)
          text += walked.key.hex();
        return text;
      },
      [&] {
        TrialOptions trials;
        trials.trials = 200;
        trials.threads = 2;
        return std::to_string(random_trials(spec, trials).distinct);
      },
      [&] {
        RuleCheckOptions check;
        check.trials = 3;
        check.max_graphs = 200;
        return std::to_string(check_rule(spec, rules, "R10a", check).compared);
      },
      [&] {
        return semantic_key(last.in_table(spec.variables()), spec.bindings()).hex() +
               Specification(preset("paper/resnet18")).key().hex();
      },
  };
  expect_the_same_from_threads(questions);
}

}  // namespace
}  // namespace syno
