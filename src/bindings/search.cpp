// search/: moves, the steps of operators, and the methods that learn from results.
#include <memory>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "syno/search/evolution.h"
#include "syno/search/graph_search.h"
#include "syno/search/lattice.h"
#include "syno/search/local_search.h"
#include "syno/search/moves.h"
#include "syno/search/neighbors.h"
#include "syno/search/steps.h"
#include "syno/search/tree_search.h"

#include "bindings.h"

namespace syno::bindings {
namespace {

using namespace nb::literals;

// Operators as search methods see them; several methods share one.
struct SearchSpace {
  std::shared_ptr<const std::vector<LabeledSteps>> operators;
  std::shared_ptr<const Neighbors> neighbors;
  // Made when a method wants it first.
  mutable std::shared_ptr<const Lattice> made_lattice;

  const std::shared_ptr<const Lattice>& lattice() const {
    if (made_lattice == nullptr) made_lattice = std::make_shared<const Lattice>(*operators);
    return made_lattice;
  }
};

SearchSpace made_space(const std::vector<Operator>& operators) {
  const auto steps = std::make_shared<std::vector<LabeledSteps>>();
  steps->reserve(operators.size());
  for (const Operator& op : operators) {
    check_interrupt();
    steps->push_back(labeled_steps(op));
  }
  return {steps, std::make_shared<const Neighbors>(*steps), nullptr};
}

std::vector<std::pair<Operator, Coefficients>> moved(const Operator& op,
                                                     const Coefficients& sizes) {
  std::vector<std::pair<Operator, Coefficients>> found;
  for (MovedOperator& near : moved_operators(op, sizes))
    found.emplace_back(std::move(near.op), std::move(near.sizes));
  return found;
}

void check_known(const SearchSpace& space, std::uint32_t op) {
  if (op >= space.operators->size()) throw nb::index_error();
}

}  // namespace

void bind_search(nb::module_& m) {
  m.def(
      "moved_operators", &moved, "operator"_a, "sizes"_a,
      "The operators one move away, see moves.h, each with the values of its coefficients. sizes: "
      "(name, value) of each coefficient.");
  nb::class_<SearchSpace>(m, "SearchSpace", "The operators that search methods select from.")
      .def(
          "__init__",
          [](SearchSpace* self, const std::vector<Operator>& operators) {
            const LongCall call;
            new (self) SearchSpace(made_space(operators));
          },
          "operators"_a)
      .def_prop_ro(
          "graphs", [](const SearchSpace& space) { return space.lattice()->node_count(); },
          "The number of partial graphs of all operators, complete ones included.")
      .def("__len__", [](const SearchSpace& space) { return space.operators->size(); })
      .def(
          "distance",
          [](const SearchSpace& space, std::uint32_t a, std::uint32_t b) {
            check_known(space, a);
            check_known(space, b);
            return space.neighbors->distance(a, b);
          },
          "a"_a, "b"_a, "How many steps two operators do not share, see neighbors.h.")
      .def(
          "nearest",
          [](const SearchSpace& space, std::uint32_t op, std::size_t count) {
            check_known(space, op);
            std::vector<std::uint32_t> found;
            for (const Neighbor& each : space.neighbors->nearest(op, count))
              found.push_back(each.op);
            return found;
          },
          "op"_a, "count"_a,
          "The `count` nearest operators, and all others at the distance of the last of them.");

  nb::class_<SearchMethod>(m, "SearchMethod",
                           "Selects operators by the results of those that were evaluated.")
      .def("__len__", &SearchMethod::operator_count)
      .def_prop_ro("left", &SearchMethod::left, "The number of operators not proposed yet.")
      .def("propose", &SearchMethod::propose, "number"_a, nb::call_guard<LongCall>(),
           "The operator that ask(number) would return; None if there is none left.")
      .def("insert", &SearchMethod::insert, "number"_a, "op"_a, nb::call_guard<LongCall>(),
           "Makes an operator pending that was proposed before.")
      .def("ask", &SearchMethod::ask, "number"_a, nb::call_guard<LongCall>(),
           "Proposes an operator and makes it pending; None if there is none left.")
      .def("answer", &SearchMethod::answer, "op"_a, "value"_a, nb::call_guard<LongCall>(),
           "Sets the value of a proposed operator; greater is better.")
      .def("fail", &SearchMethod::fail, "op"_a, nb::call_guard<LongCall>(),
           "Reports that the trial of a proposed operator failed.");

  nb::class_<LocalSearch, SearchMethod>(m, "LocalSearch",
                                        "Evaluates the neighbors of the best operators.")
      .def(
          "__init__",
          [](LocalSearch* self, const SearchSpace& space, std::uint64_t seed, std::int64_t samples,
             std::int64_t neighbors, double restarts, std::int64_t reach) {
            new (self) LocalSearch(space.neighbors, seed, {samples, neighbors, restarts, reach});
          },
          "space"_a, "seed"_a, nb::kw_only(), "samples"_a, "neighbors"_a, "restarts"_a, "reach"_a);
  nb::class_<Evolution, SearchMethod>(
      m, "Evolution", "Regularized evolution: neighbors of the winner of a tournament.")
      .def(
          "__init__",
          [](Evolution* self, const SearchSpace& space, std::uint64_t seed, std::int64_t population,
             std::int64_t tournament, std::int64_t neighbors) {
            new (self) Evolution(space.neighbors, seed, {population, tournament, neighbors});
          },
          "space"_a, "seed"_a, nb::kw_only(), "population"_a, "tournament"_a, "neighbors"_a);
  nb::class_<TreeSearch, SearchMethod>(m, "TreeSearch",
                                       "Tree search with upper confidence bounds, as in the paper.")
      .def(
          "__init__",
          [](TreeSearch* self, const SearchSpace& space, std::uint64_t seed, double exploration,
             double widening, double all_moves, double samples, double power, double pending) {
            new (self) TreeSearch(space.lattice(), space.operators, seed,
                                  {exploration, widening, all_moves, samples, power, pending});
          },
          "space"_a, "seed"_a, nb::kw_only(), "exploration"_a, "widening"_a, "all_moves"_a,
          "samples"_a, "power"_a, "pending"_a);
  nb::class_<GraphSearch, SearchMethod>(m, "GraphSearch", "Monte-Carlo search over partial graphs.")
      .def(
          "__init__",
          [](GraphSearch* self, const SearchSpace& space, std::uint64_t seed, std::int64_t samples,
             double exploration, double mix, double pull) {
            new (self) GraphSearch(space.lattice(), seed, {samples, exploration, mix, pull});
          },
          "space"_a, "seed"_a, nb::kw_only(), "samples"_a, "exploration"_a, "mix"_a, "pull"_a)
      .def("set_prior", &GraphSearch::set_prior, "values"_a, nb::call_guard<LongCall>(),
           "Sets what a surrogate predicts for each operator; an empty list removes it.");
}

}  // namespace syno::bindings
