// Fingerprints against structure hashes: two graphs have one fingerprint exactly when they have one structure.
#include "syno/space/fingerprints.h"

#include <gtest/gtest.h>
#include <map>
#include <optional>

#include "syno/graph/canonical.h"
#include "syno/quality/quality.h"
#include "syno/space/orders_test.h"
#include "syno/space/renamed_test.h"
#include "syno/space/small_spaces_test.h"
#include "syno/support/random.h"

namespace syno {
namespace {

using namespace samples;

// A random graph of moves, reductions first.
Graph random_graph(const Specification& spec, StateSpace& space, std::uint64_t seed, int depth) {
  CounterRandom random(seed, 11);
  Graph graph(spec.variables(), spec.output());
  State state = space.root();
  std::vector<Move> moves;
  const std::uint64_t reductions = random.below(4);
  for (int tries = 0; tries < 200 && graph.depth() < depth; ++tries) {
    space.moves(state, false, moves);
    if (moves.empty()) break;
    const auto primitive = static_cast<Primitive>(random.below(kPrimitiveCount));
    if ((primitive == Primitive::kReduce) != (state.depth < reductions && state.only_reductions()))
      continue;
    std::erase_if(moves, [&](const Move& move) { return move.primitive != primitive; });
    if (moves.empty()) continue;
    const Move move = moves[random.below(moves.size())];
    State child = state;
    if (!space.advance(child, move).empty()) continue;
    graph.apply(space.step(state, move));
    state = child;
  }
  return graph;
}

struct Marked {
  Graph graph;
  Hash128 fingerprint;
};

// Builds the goal in a random order of its steps and its equal reductions. Nothing where the specification does not allow
// that order: which contraction drops or joins a coordinate depends on it.
std::optional<Marked> build(StateSpace& space, const Orders& orders, CounterRandom& random) {
  Orders::Partial partial = orders.start();
  State state = space.root();
  Fingerprints fingerprints(space);
  while (partial.graph.depth() < orders.goal().depth()) {
    std::vector<std::size_t> ready = orders.ready(partial);
    const std::size_t first = ready.front();
    if (orders.goal().steps()[first].primitive == Primitive::kReduce) {
      ready.clear();
      for (std::size_t s = 0; s < orders.goal().steps().size(); ++s) {
        const Step& step = orders.goal().steps()[s];
        if (!(partial.taken >> s & 1) && step.primitive == Primitive::kReduce &&
            step.size == orders.goal().steps()[first].size)
          ready.push_back(s);
      }
    }
    const std::size_t s = ready[random.below(ready.size())];
    const Move move = space.move(state, orders.step(partial, s));
    const Hash128 foretold = fingerprints.after(space, state, move);
    fingerprints.advance(space, state, move);
    if (const Reason why = space.advance(state, move); !why.empty()) {
      EXPECT_TRUE(why == reason::kElementWise || why == reason::kJoined ||
                  why == reason::kDropped || why == reason::kPooling)
          << why;
      return std::nullopt;
    }
    EXPECT_EQ(fingerprints.fingerprint(state), foretold) << graph_text(partial.graph);
    partial = orders.take(partial, s);
  }
  return Marked{partial.graph, fingerprints.fingerprint(state)};
}

class FingerprintTable {
 public:
  void add(const std::optional<Marked>& built, const std::string& name) {
    if (!built) return;
    const Marked& marked = *built;
    const Hash128 structure = structure_hash(marked.graph);
    const auto [place, is_new] = fingerprints_.try_emplace(structure, marked.fingerprint);
    EXPECT_EQ(place->second, marked.fingerprint) << name << ": two fingerprints for\n"
                                                 << graph_text(marked.graph);
    const auto [other, fresh] = structures_.try_emplace(marked.fingerprint, structure);
    EXPECT_EQ(other->second, structure) << name << ": another structure has the fingerprint of\n"
                                        << graph_text(marked.graph);
    repeats_ += !is_new;
  }
  std::size_t structures() const { return structures_.size(); }
  std::size_t repeats() const { return repeats_; }

 private:
  std::map<Hash128, Hash128> fingerprints_;
  std::map<Hash128, Hash128> structures_;
  std::size_t repeats_ = 0;
};

TEST(Fingerprints, AreEqualExactlyWhereStructuresAre) {
  for (const SmallSpace& small : varied_spaces()) {
    const Specification spec(small.source);
    StateSpace space(spec);
    FingerprintTable table;
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      const Orders orders(random_graph(spec, space, seed, 3 + static_cast<int>(seed % 6)));
      CounterRandom random(seed, 12);
      for (int order = 0; order < 4; ++order) table.add(build(space, orders, random), small.name);
      ASSERT_FALSE(HasFailure()) << small.name << ", seed " << seed << "\n"
                                 << graph_text(orders.goal());
    }
    EXPECT_GT(table.structures(), 40U) << small.name;
    EXPECT_GT(table.repeats(), 100U) << small.name;
  }
}

// Look-alikes: many equal reductions, which carry labels.
TEST(Fingerprints, AreBlindToTheLabelsOfEqualReductions) {
  SpecificationSource source = small_space("linear").source;
  source.coefficient = {"s=2: 5"};
  source.limits.max_pooling = 1000;
  source.limits.max_reduction_ratio = 1000;
  source.limits.max_weights = 3;
  source.limits.max_depth = 12;
  source.limits.max_splits = 4;
  const Specification spec(source);
  StateSpace space(spec);
  const Size s = Size::variable(spec.variables()->index("s"));
  FingerprintTable table;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CounterRandom random(seed, 13);
    Graph graph(spec.variables(), spec.output());
    const std::uint64_t count = 2 + random.below(4);
    for (std::uint64_t r = 0; r < count; ++r) graph.apply(Step::reduce(s));
    State state = space.replay(graph);
    std::vector<Move> moves;
    for (int tries = 0; tries < 40 && graph.depth() < static_cast<int>(count) + 4; ++tries) {
      space.moves(state, false, moves);
      std::erase_if(moves, [](const Move& move) { return move.primitive == Primitive::kReduce; });
      if (moves.empty()) break;
      const Move move = moves[random.below(moves.size())];
      State child = state;
      if (!space.advance(child, move).empty()) continue;
      graph.apply(space.step(state, move));
      state = child;
    }
    const Orders orders(graph);
    for (int order = 0; order < 6; ++order) table.add(build(space, orders, random), "labels");
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(table.structures(), 100U);
}

TEST(Fingerprints, DoNotDependOnNamesOrTheOrderOfDeclaration) {
  for (const SmallSpace& small : varied_spaces()) {
    const Specification spec(small.source);
    const auto names = reversed_names(spec);
    const Specification other(renamed(small.source, names));
    StateSpace space(spec);
    StateSpace other_space(other);
    const auto translate = [&](const Size& size) {
      Size result;
      for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
        if (size.power(v) != 0)
          result =
              result * Size::variable(other.variables()->index(names.at(spec.variables()->name(v))),
                                      size.power(v));
      }
      return result;
    };
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Graph graph = random_graph(spec, space, seed, 5);
      State state = space.root();
      Fingerprints fingerprints(space);
      for (const Step& step : graph.steps()) {
        const Move move = space.move(state, step);
        fingerprints.advance(space, state, move);
        ASSERT_EQ(space.advance(state, move), "");
      }
      // Reductions come in the order of sizes, which is that of names.
      Graph mapped(other.variables(), other.output());
      std::vector<Step> steps;
      for (Step step : graph.steps()) {
        step.out = {kNoCoordinate, kNoCoordinate};
        if (!step.size.is_one()) step.size = translate(step.size);
        steps.push_back(step);
        mapped.apply(step);
      }
      const Orders orders(mapped);
      CounterRandom random(seed, 14);
      const auto built = build(other_space, orders, random);
      if (!built) continue;
      EXPECT_EQ(built->fingerprint, fingerprints.fingerprint(state))
          << small.name << ", seed " << seed << "\n"
          << graph_text(graph) << graph_text(mapped);
    }
  }
}

}  // namespace
}  // namespace syno
