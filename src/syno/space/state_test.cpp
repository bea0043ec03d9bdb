// States against what defines them: ledger, graph and rules.
#include "syno/space/state.h"

#include <gtest/gtest.h>
#include <set>

#include "syno/quality/quality.h"
#include "syno/rules/catalogue.h"
#include "syno/space/random_specification_test.h"
#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

using namespace samples;

// Every field of a state that a graph says, too.
void expect_describes(const Specification& spec, const StateSpace& space, const State& state,
                      const Graph& graph, const Ledger& ledger) {
  const SizeSpace& sizes = space.sizes();
  EXPECT_EQ(state.depth, graph.depth());
  EXPECT_EQ(state.fit, ledger.fit);
  EXPECT_EQ(sizes.size(state.reductions), ledger.reductions);
  EXPECT_EQ(sizes.size(state.repeats), ledger.repeats);
  for (std::size_t v = 0; v < spec.variables()->count(); ++v)
    EXPECT_EQ(state.left[v], spec.variable(v).budget - ledger.charges[v]);
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) EXPECT_EQ(state.counts[p], ledger.counts[p]);
  ASSERT_EQ(state.size, graph.frontier().size());
  std::vector<CoordinateId> reductions;
  for (std::size_t id = 0; id < graph.coordinates().size(); ++id) {
    if (graph.is_reduction(static_cast<CoordinateId>(id)))
      reductions.push_back(static_cast<CoordinateId>(id));
  }
  const auto made_of = [&](auto&& self, CoordinateId id, CoordinateId reduction) -> bool {
    if (id == reduction) return true;
    const Step* step = graph.producer(id);
    if (step == nullptr) return false;
    for (const CoordinateId in : step->in) {
      if (in != kNoCoordinate && self(self, in, reduction)) return true;
    }
    return false;
  };
  for (std::size_t place = 0; place < state.size; ++place) {
    const Slot& slot = state.slots[place];
    const CoordinateId id = graph.frontier()[place];
    const Coordinate& coordinate = graph.coordinate(id);
    EXPECT_EQ(slot.id, id);
    EXPECT_EQ(sizes.size(slot.size), coordinate.extent);
    EXPECT_EQ(slot.chain, coordinate.chain);
    EXPECT_EQ(slot.reductions_only, coordinate.reductions_only);
    EXPECT_EQ(slot.causal, coordinate.causal);
    EXPECT_EQ(slot.seen, coordinate.weights != 0);
    EXPECT_EQ(slot.passed, graph.is_iterator(id) && spec.passes_output(coordinate.index));
    EXPECT_EQ(slot.origin == Origin::kIterator, graph.is_iterator(id));
    EXPECT_EQ(slot.origin == Origin::kReduction, graph.is_reduction(id));
    for (std::size_t t = 0; t < graph.weights().size(); ++t)
      EXPECT_EQ((slot.weights >> t & 1) != 0, graph.weights()[t].holds(id));
    for (std::size_t r = 0; r < reductions.size(); ++r)
      EXPECT_EQ((slot.reductions >> r & 1) != 0, made_of(made_of, id, reductions[r]));
  }
}

Hash128 child_hash(const Graph& graph, const Step& step) {
  Graph child = graph;
  child.apply(step);
  return structure_hash(child);
}

// One graph on a walk: all moves and up to `most` of all steps that there are, compared both ways. Returns the steps that
// both allow.
std::vector<Step> compare(const Specification& spec, StateSpace& space, const Graph& graph,
                          const Ledger& ledger, const State& state,
                          const std::vector<Size>& universe, CounterRandom& random,
                          std::size_t most) {
  std::vector<Step> allowed;
  std::set<Hash128> reached;
  std::set<Hash128> hopeless;
  std::vector<Move> moves;
  space.moves(state, false, moves);
  std::set<std::string> texts;
  for (const Move& move : moves) {
    const Step step = space.step(state, move);
    EXPECT_EQ(space.move(state, step), move);
    Ledger after = ledger;
    const Reason by_ledger = admit(spec, graph, step, after);
    State child = state;
    const Reason by_state = space.advance(child, move);
    if (by_state == reason::kPooling) {
      hopeless.insert(child_hash(graph, step));
      continue;
    }
    EXPECT_EQ(by_ledger, by_state);
    if (!by_ledger.empty() || !by_state.empty()) continue;
    Graph longer = graph;
    longer.apply(step);
    reached.insert(structure_hash(longer));
    expect_describes(spec, space, child, longer, after);
    allowed.push_back(step);
    if (testing::Test::HasFailure()) return {};
  }
  std::vector<Step> steps = reference::candidate_steps(spec, graph, universe);
  while (steps.size() > most) {
    steps[random.below(steps.size())] = steps.back();
    steps.pop_back();
  }
  for (const Step& step : steps) {
    Ledger after = ledger;
    if (!admit(spec, graph, step, after).empty()) continue;
    const Hash128 hash = child_hash(graph, step);
    EXPECT_TRUE(reached.contains(hash) || hopeless.contains(hash))
        << "no move leads to " << primitive_info(step.primitive).name << " "
        << step.size.text(*spec.variables());
  }
  return allowed;
}

void walk(const SpecificationSource& source, std::uint64_t seed, std::size_t most, int depth) {
  const Specification spec(source);
  StateSpace space(spec);
  const std::vector<Size> universe = reference::size_universe(spec);
  CounterRandom random(seed, 7);
  Graph graph(spec.variables(), spec.output());
  Ledger ledger = start_ledger(spec);
  State state = space.root();
  while (graph.depth() < std::min<std::int64_t>(depth, spec.limits().max_depth)) {
    const std::vector<Step> steps =
        compare(spec, space, graph, ledger, state, universe, random, most);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << "\n"
                                              << describe(source) << "\n"
                                              << graph_text(graph);
    // Primitives alike, or contractions would be nearly all.
    std::vector<Primitive> kinds;
    for (const Step& step : steps) {
      if (kinds.empty() || kinds.back() != step.primitive) kinds.push_back(step.primitive);
    }
    if (kinds.empty()) return;
    const Primitive kind = kinds[random.below(kinds.size())];
    std::vector<const Step*> choice;
    for (const Step& step : steps) {
      if (step.primitive == kind) choice.push_back(&step);
    }
    const Step step = *choice[random.below(choice.size())];
    ASSERT_EQ(admit(spec, graph, step, ledger), "");
    ASSERT_EQ(space.advance(state, space.move(state, step)), "");
    graph.apply(step);
  }
}

TEST(State, AgreesWithLedgerAndGraphOnSmallSpecifications) {
  for (const SmallSpace& small : small_spaces()) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      walk(small.source, seed, 100'000, 6);
      ASSERT_FALSE(HasFailure()) << small.name;
    }
  }
}

TEST(State, AgreesWithLedgerAndGraphOnThePapersSpecificationsAndVariants) {
  for (const SmallSpace& space : varied_spaces()) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      walk(space.source, seed, 300, 8);
      ASSERT_FALSE(HasFailure()) << space.name;
    }
  }
}

TEST(State, AgreesWithLedgerAndGraphOnRandomSpecifications) {
  int met = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto source = RandomSpecification(seed).source();
    if (!source) continue;
    ++met;
    walk(*source, seed, 100'000, 5);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(met, 300);
}

TEST(State, MovesLeaveOutWhatR8LeavesOut) {
  const Rule* rule = nullptr;
  for (const Rule* one : catalogue()) {
    if (one->id == "R8") rule = one;
  }
  ASSERT_NE(rule, nullptr);
  std::int64_t rejected = 0;
  for (const SmallSpace& small : small_spaces()) {
    const Specification spec(small.source);
    StateSpace space(spec);
    const reference::Reference all(spec, RuleSet::none(), 3);
    std::vector<Move> moves;
    std::vector<Move> restricted;
    for (std::size_t n = 0; n < all.nodes().size(); n += 1 + all.nodes().size() / 300) {
      const Graph& graph = all.nodes()[n].graph;
      State state;
      try {
        state = space.replay(graph);
      } catch (const UserError&) {
        continue;  // hopeless by pooling
      }
      space.moves(state, false, moves);
      space.moves(state, true, restricted);
      std::vector<Move> wanted;
      for (const Move& move : moves) {
        const Step step = space.step(state, move);
        if (!rule->matches({spec, graph, step})) wanted.push_back(move);
      }
      EXPECT_EQ(restricted, wanted) << small.name << "\n" << graph_text(graph);
      rejected += static_cast<std::int64_t>(moves.size() - wanted.size());
    }
  }
  EXPECT_GT(rejected, 100);
}

TEST(State, ReplayRefusesAStepAsTheLedgerDoes) {
  const SmallSpace small = small_space("linear");
  const Specification spec(small.source);
  StateSpace space(spec);
  Graph graph(spec.variables(), spec.output());
  for (int i = 0; i < 3; ++i)
    graph.apply(Step::reduce(Size::variable(spec.variables()->index("I"))));
  try {
    space.replay(graph);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("a budget is exhausted"), std::string::npos)
        << error.what();
  }
}

TEST(State, SpecificationsBeyondAStateAreRefused) {
  const auto message = [](auto change) {
    SpecificationSource source = small_space("linear").source;
    change(source.limits);
    const Specification spec(source);
    try {
      StateSpace space(spec);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message([](Limits& limits) { limits.max_weights = 9; }).find("at most 8 weights"),
            std::string::npos);
  EXPECT_NE(message([](Limits& limits) { limits.max_merges = 30; }).find("coordinates at once"),
            std::string::npos);
  EXPECT_NE(message([](Limits& limits) { limits.max_depth = 101; }).find("at most 100 steps"),
            std::string::npos);
  // A state counts reductions in a mask of its own.
  EXPECT_NE(message([](Limits& limits) {
              limits.max_reductions = kMaxReductions + 1;
            }).find("max_reductions"),
            std::string::npos);
  EXPECT_EQ(message([](Limits& limits) { limits.max_reductions = kMaxReductions; }), "accepted");
}

}  // namespace
}  // namespace syno
