// space/: random walks, and children of partial graphs for tree searches.
#include "syno/space/walks.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <thread>

#include "syno/space/tree.h"
#include "syno/support/error.h"

#include "described_options.h"
#include "enumerating.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

// A tree fills tables as it is asked, so threads of Python ask it one after the other. A rule of a user may be asked
// meanwhile; it cannot ask the tree in turn.
class SharedTree {
 public:
  SharedTree(const Specification& spec, const RuleSet& rules, std::int64_t max_depth,
             const Space* enumerated, BoundMode bound)
      : tree_(spec, rules, max_depth, enumerated, bound) {}

  bool exact() const { return tree_.exact(); }

  template <class Question>
  auto ask(const Question& question) {
    if (asking_.load() == std::this_thread::get_id()) {
      throw Complaint("a rule calls the tree that is evaluating this rule")
          .hint("let the rule depend only on its graph and step")
          .error();
    }
    // In this order: whoever waits for the lock must not hold the interpreter's.
    const LongCall call;
    std::unique_lock lock(mutex_, std::defer_lock);
    while (!lock.try_lock_for(std::chrono::milliseconds(50))) check_interrupt();
    const Asking asking(asking_);
    return question(tree_);
  }

 private:
  struct Asking {
    explicit Asking(std::atomic<std::thread::id>& thread) : thread_(thread) {
      thread_ = std::this_thread::get_id();
    }
    ~Asking() { thread_ = std::thread::id(); }
    std::atomic<std::thread::id>& thread_;
  };

  Tree tree_;
  std::timed_mutex mutex_;
  std::atomic<std::thread::id> asking_;
};

Walks run_walks(const Specification& spec, const RuleSet& rules, std::int64_t walks,
                std::int64_t width, double max_seconds, std::uint64_t seed, std::int64_t max_depth,
                std::int64_t max_operators, std::int64_t threads, const std::string& bound,
                const nb::object& progress) {
  WalkOptions options;
  options.walks = walks;
  options.width = width;
  options.max_seconds = max_seconds;
  options.seed = seed;
  options.max_depth = max_depth;
  options.max_operators = max_operators;
  options.threads = threads;
  options.rules = rules;
  options.bound = bound_mode(bound);
  const auto reports = [&progress](const Walks& walked) {
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return progress.is_none() ||
           nb::cast<bool>(progress(walked.walks, walked.operators.size(), walked.coverage()));
  };
  const LongCall call;
  return random_walks(spec, options, reports);
}

}  // namespace

void bind_walks(nb::module_& m) {
  nb::class_<WalkedOperator>(m, "WalkedOperator", "An operator that random walks found.")
      .def_ro("op", &WalkedOperator::op)
      .def_prop_ro("key", [](const WalkedOperator& found) { return found.key.hex(); })
      .def_ro("depth", &WalkedOperator::depth)
      .def_ro("weight", &WalkedOperator::weight,
              "An estimate of the number of structures of the space that it represents.")
      .def_ro("met", &WalkedOperator::met, "The number of populations that found it.");
  nb::class_<Walks>(m, "Walks",
                    "The operators that guided random walks found, and estimates of the space.")
      .def_ro("operators", &Walks::operators,
              "One operator for each semantic key, in the order in which they were found.")
      .def_ro("walks", &Walks::walks)
      .def_ro("populations", &Walks::populations,
              "Groups of particles that select their steps together.")
      .def_ro("accepted", &Walks::accepted,
              "The number of operators found, counted once for each population.")
      .def_ro("singletons", &Walks::singletons, "Operators that exactly one population found.")
      .def_ro("doubletons", &Walks::doubletons, "Operators that exactly two populations found.")
      .def_ro("structures", &Walks::structures, "An estimate of the structures of the space.")
      .def_ro("structures_error", &Walks::structures_error, "Its standard error.")
      .def_prop_ro("coverage", &Walks::coverage)
      .def_prop_ro("at_least", &Walks::at_least);
  m.def(
      "walk_options", [] { return described_options(walk_options()); },
      nb::sig("def walk_options() -> list[dict[str, typing.Any]]"),
      "The name, type, default, minimum and doc of each budget of random walks.");
  m.def("random_walks", &run_walks, "spec"_a, "rules"_a, "walks"_a, "width"_a = WalkOptions().width,
        "max_seconds"_a = 0.0, "seed"_a = 0, "max_depth"_a = 0, "max_operators"_a = 0,
        "threads"_a = 0, "bound"_a = "full", "progress"_a = nb::none(),
        nb::sig("def random_walks(spec: Specification, rules: RuleSet, walks: int, "
                "width: int = ..., max_seconds: float = 0.0, seed: int = 0, max_depth: int = 0, "
                "max_operators: int = 0, threads: int = 0, bound: str = 'full', progress: "
                "collections.abc.Callable[[int, int, float], bool] | None = None) -> Walks"),
        "Samples operators by guided random walks. progress(walks, operators, coverage) is called "
        "after every "
        "round and ends the walks by returning False. The result is the same for any number of "
        "threads.");

  nb::class_<TreeNode>(m, "TreeNode", "A partial graph in a tree search.")
      .def_ro("graph", &TreeNode::graph)
      .def_prop_ro("depth", [](const TreeNode& node) { return node.graph.depth(); })
      .def_prop_ro("fingerprint", [](const TreeNode& node) { return node.fingerprint.hex(); })
      .def_ro("step", &TreeNode::step, "The last step, in the text format.")
      .def_ro("least_steps", &TreeNode::least_steps,
              "A lower bound on the number of missing steps.")
      .def_ro("count", &TreeNode::count,
              "The number of operators at or below the node, or a lower bound on it.")
      .def_ro("exact", &TreeNode::exact, "Whether count is exact.");
  nb::class_<SharedTree>(m, "Tree", "The space as a tree of partial graphs.")
      .def(
          "__init__",
          [](SharedTree* self, const Specification& spec, const RuleSet& rules,
             std::int64_t max_depth, const Space* enumerated, const std::string& bound) {
            new (self) SharedTree(spec, rules, max_depth, enumerated, bound_mode(bound));
          },
          "spec"_a, "rules"_a, "max_depth"_a = 0, "listed"_a = nb::none(), "bound"_a = "full",
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>())
      .def_prop_ro("exact", &SharedTree::exact)
      .def("root",
           [](SharedTree& self) { return self.ask([](Tree& tree) { return tree.root(); }); })
      .def(
          "children",
          [](SharedTree& self, const TreeNode& node) {
            return self.ask([&](Tree& tree) { return tree.children(node); });
          },
          "node"_a)
      .def(
          "operators",
          [](SharedTree& self, const TreeNode& node) {
            return self.ask([&](Tree& tree) { return tree.operators(node); });
          },
          "node"_a, "The operators that are complete at the node itself.");
}

}  // namespace syno::bindings
