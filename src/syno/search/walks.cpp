#include "syno/search/walks.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "syno/access/key.h"
#include "syno/search/accept.h"
#include "syno/search/expander.h"
#include "syno/support/random.h"

namespace syno {
namespace {

constexpr std::int64_t kProgressEvery = 100;
// Steps back in one walk before it is given up.
constexpr int kMostBacks = 1000;

// How often moves of one kind at one depth led to an accepted operator. Kinds are coarse, so that a few hundred walks
// teach something: the primitive, and for contractions how many coordinates leave.
class Experience {
 public:
  static std::uint32_t kind(int depth, const Move& move) {
    std::uint32_t detail = 0;
    if (move.primitive == Primitive::kShare) {
      for (std::uint64_t roles = move.roles; roles != 0; roles >>= 2) detail += (roles & 3U) > 1;
    } else if (move.size != kNoSize) {
      detail = static_cast<std::uint32_t>(move.size) & 0xFFF;
    }
    return static_cast<std::uint32_t>(depth) << 20 |
           static_cast<std::uint32_t>(move.primitive) << 16 | detail;
  }
  // Laplace's rule of succession.
  double weight(std::uint32_t kind) const {
    const auto place = counts_.find(kind);
    if (place == counts_.end()) return 0.5;
    return (place->second.good + 1.0) / (place->second.tried + 2.0);
  }
  void learn(const std::vector<std::uint32_t>& kinds, bool good) {
    for (const std::uint32_t kind : kinds) {
      Count& count = counts_[kind];
      count.tried += 1;
      count.good += good;
    }
  }

 private:
  struct Count {
    double tried = 0;
    double good = 0;
  };
  std::unordered_map<std::uint32_t, Count> counts_;
};

class Walker {
 public:
  Walker(const Specification& spec, const WalkOptions& options)
      : spec_(spec),
        options_(options),
        expander_(spec, options_.rules, options.bound),
        judge_(spec),
        keyer_(spec.variables(), spec.bindings()),
        root_(expander_.root()),
        limit_(static_cast<int>(options.max_depth > 0
                                    ? std::min(options.max_depth, spec.limits().max_depth)
                                    : spec.limits().max_depth)) {}

  // One walk to a depth of its own: goes on until it may end and chooses to, steps back where no move is left, and gives
  // up after a number of steps back.
  void walk(std::int64_t number, Walks& walks) {
    CounterRandom random(options_.seed, static_cast<std::uint64_t>(number));
    const int limit = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(limit_)));
    std::vector<Frame> way;
    way.push_back(frame(root_, limit));
    std::vector<std::uint32_t> kinds;
    int backs = 0;
    while (true) {
      Frame& here = way.back();
      const double end_weight = here.may_end ? 1.0 : 0.0;
      double total = end_weight;
      for (const double weight : here.weights) total += weight;
      double place = random.uniform() * total - end_weight;
      if (here.may_end && (place < 0 || total == end_weight))
        return end(here.position, kinds, walks);
      if (total == 0) {
        way.pop_back();
        if (way.empty() || ++backs > kMostBacks) break;
        kinds.pop_back();
        continue;
      }
      std::size_t choice = here.moves.size() - 1;
      for (std::size_t i = 0; i < here.moves.size(); ++i) {
        place -= here.weights[i];
        if (here.weights[i] > 0 && place < 0) {
          choice = i;
          break;
        }
      }
      while (here.weights[choice] == 0) --choice;
      here.weights[choice] = 0;
      // Rules are asked of the chosen move only.
      const Move move = here.moves[choice].move;
      if (expander_.refusal(here.position, move) != nullptr) continue;
      kinds.push_back(Experience::kind(here.position.state.depth, move));
      Position next = here.position;
      expander_.take(next, expander_.spelled(move));
      way.push_back(frame(std::move(next), limit));
    }
    experience_.learn(kinds, false);
  }

 private:
  struct Frame {
    Position position;
    std::vector<LiveMove> moves;
    std::vector<double> weights;
    bool may_end = false;
  };

  Frame frame(Position position, int limit) {
    Frame frame;
    frame.moves = expander_.live_moves(position, limit);
    for (const LiveMove& live : frame.moves)
      frame.weights.push_back(
          experience_.weight(Experience::kind(position.state.depth, live.move)));
    frame.may_end = !position.graph.weights().empty() && expander_.has_input_sizes(position.state);
    frame.position = std::move(position);
    return frame;
  }

  void end(const Position& here, const std::vector<std::uint32_t>& kinds, Walks& walks) {
    bool good = false;
    const auto matches = matchings(here.graph, spec_.input(), spec_.passed_through());
    walks.completed += !matches.empty();
    for (const std::vector<CoordinateId>& match : matches) {
      if (options_.rules.first_refusal(spec_, here.graph, spec_.input(), match) != nullptr)
        continue;
      if (!judge_.first_reason(here.graph, match, here.state.fit).empty()) continue;
      good = true;
      const Hash128 key = keyer_.key(here.graph, spec_.input(), match);
      ++walks.accepted;
      const int times = ++met_[key];
      if (times == 1) {
        walks.operators.push_back(
            {Operator(here.graph, spec_.input(), match), key, here.state.depth});
        ++walks.singletons;
      } else {
        ++walks.repeated;
        walks.singletons -= times == 2;
        walks.doubletons += (times == 2) - (times == 3);
      }
    }
    experience_.learn(kinds, good);
  }

  const Specification& spec_;
  const WalkOptions& options_;
  Expander expander_;
  OperatorJudge judge_;
  Keyer keyer_;
  Position root_;
  int limit_;
  Experience experience_;
  std::unordered_map<Hash128, int> met_;
};

}  // namespace

double Walks::coverage() const {
  if (accepted == 0) return 0;
  return 1.0 - static_cast<double>(singletons) / static_cast<double>(accepted);
}

double Walks::at_least() const {
  const auto one = static_cast<double>(singletons);
  return static_cast<double>(operators.size()) +
         one * std::max(0.0, one - 1) / (2.0 * (static_cast<double>(doubletons) + 1));
}

Walks random_walks(const Specification& spec, const WalkOptions& options,
                   const WalkProgress& progress) {
  Walker walker(spec, options);
  Walks walks;
  while (walks.walks < options.walks) {
    walker.walk(walks.walks++, walks);
    if (options.max_operators > 0 &&
        static_cast<std::int64_t>(walks.operators.size()) >= options.max_operators)
      break;
    if (walks.walks % kProgressEvery == 0 && progress && !progress(walks)) break;
  }
  return walks;
}

}  // namespace syno
