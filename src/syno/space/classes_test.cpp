// No class of operators is lost by a rule, and how often a class is enumerated: every structure of a small specification,
// without rules and without a bound, against what the rules leave, class by class. Classes are those of the semantic key,
// joined where brute force over all terms says that two keys stand for one operator.
#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

#include "syno/graph/canonical.h"
#include "syno/key/key.h"
#include "syno/key/oracle_test.h"
#include "syno/space/path.h"
#include "syno/space/small_spaces_test.h"
#include "syno/support/golden_test.h"
#include "syno/support/mix.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using namespace samples;

/// Everything but approximate rules.
RuleSet exact_rules() {
  RuleSet rules;
  for (const Rule* rule : catalogue()) {
    if (rule->kind == RuleKind::kApproximate) rules.set(rule->id, false);
  }
  return rules;
}

struct Member {
  Operator op;
  int depth = 0;
  Hash128 key;
  /// Of the class; the same for equal operators.
  std::size_t group = 0;
  bool exact = false;
  bool kept = false;
};

FitMask fit_of(const Operator& op, const Specification& spec) {
  FitMask fit = spec.full_fit();
  for (const Coordinate& coordinate : op.graph().coordinates()) fit &= spec.fit(coordinate.extent);
  return fit;
}

/// The operators of a specification without rules, in classes.
class Classes {
 public:
  Classes(const SmallSpace& small) : spec_(small.source), name_(small.name) {
    list(RuleSet::restrictions(), BoundMode::kNone, [&](const Operator& op, int depth) {
      Member member{op, depth, {}, 0, false, false};
      member.key = semantic_key(op.in_table(spec_.variables()), spec_.bindings());
      place_[op.structure()] = members_.size();
      members_.push_back(std::move(member));
    });
    const auto find = [&](const Operator& op) -> Member* {
      const auto place = place_.find(op.structure());
      if (place == place_.end()) {
        ADD_FAILURE() << name_ << ": rules list what is not there without them\n" << op.text();
        return nullptr;
      }
      return &members_[place->second];
    };
    list(exact_rules(), BoundMode::kFull, [&](const Operator& op, int) {
      if (Member* member = find(op)) member->exact = true;
    });
    list(RuleSet(), BoundMode::kFull, [&](const Operator& op, int) {
      if (Member* member = find(op)) member->kept = true;
    });
    group();
  }

  const Specification& spec() const { return spec_; }
  const std::vector<Member>& members() const { return members_; }
  /// Pairs that brute force could not decide in time.
  std::size_t undecided() const { return undecided_; }
  /// Of what the default rules list.
  const Hash128& signature() const { return signature_; }

 private:
  template <class Take>
  void list(const RuleSet& rules, BoundMode bound, Take take) {
    EnumerateOptions made = options(rules, bound);
    made.keys = false;
    // Without a bound, smaller depth limits would take most of the time.
    if (bound == BoundMode::kNone) made.first_depth = 100;
    const Space space = enumerate_space(spec_, made);
    ASSERT_TRUE(space.exhausted) << name_;
    signature_ = space.signature();
    for (std::size_t i = 0; i < space.operators.size(); ++i)
      take(space.op(spec_, i), space.depth(space.operators[i].node));
  }

  // One term set for each binding that an operator fits.
  std::vector<oracle::TermSet> terms(const Operator& op) const {
    const Operator local = op.in_table(spec_.variables());
    const FitMask fit = fit_of(local, spec_);
    std::vector<oracle::TermSet> sets;
    for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
      if (fit >> b & 1) sets.push_back(oracle::term_set(local, spec_.bindings()[b]));
    }
    return sets;
  }

  void group() {
    std::map<Hash128, std::size_t> by_key;
    std::vector<const Member*> first;
    for (Member& member : members_) {
      const auto [place, is_new] = by_key.try_emplace(member.key, first.size());
      if (is_new) first.push_back(&member);
      member.group = place->second;
    }
    // Keys that stand for one operator.
    std::vector<std::size_t> joined(first.size());
    std::map<std::pair<FitMask, std::vector<std::uint64_t>>, std::vector<std::size_t>> alike;
    for (std::size_t k = 0; k < first.size(); ++k) {
      joined[k] = k;
      std::vector<std::uint64_t> invariants;
      for (const oracle::TermSet& set : terms(first[k]->op))
        invariants.push_back(oracle::invariant(set));
      alike[{fit_of(first[k]->op.in_table(spec_.variables()), spec_), invariants}].push_back(k);
    }
    for (const auto& [invariant, keys] : alike) {
      for (std::size_t i = 1; i < keys.size(); ++i) {
        const std::vector<oracle::TermSet> mine = terms(first[keys[i]]->op);
        for (std::size_t j = 0; j < i; ++j) {
          if (joined[keys[j]] != keys[j]) continue;
          if (!same(mine, terms(first[keys[j]]->op))) continue;
          joined[keys[i]] = keys[j];
          break;
        }
      }
    }
    for (Member& member : members_) member.group = joined[member.group];
  }

  bool same(const std::vector<oracle::TermSet>& a, const std::vector<oracle::TermSet>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      try {
        if (!oracle::same_operator(a[i], b[i])) return false;
      } catch (const InternalError&) {
        ++undecided_;
        return false;
      }
    }
    return true;
  }

  Specification spec_;
  std::string name_;
  std::vector<Member> members_;
  std::map<Hash128, std::size_t> place_;
  std::size_t undecided_ = 0;
  Hash128 signature_;
};

std::string one_line(const Operator& op) {
  std::string text;
  const std::string lines = op.text();
  for (const std::string_view line : split_lines(lines)) {
    if (line.starts_with("syno") || line.starts_with("out") || line.starts_with("in ") ||
        line.empty())
      continue;
    text += (text.empty() ? "" : "; ") + std::string(line);
  }
  return text;
}

// What the two do in different ways: primitives that only one of them has.
std::string family(const Operator& a, const Operator& b) {
  const auto counts_a = a.graph().primitive_counts();
  const auto counts_b = b.graph().primitive_counts();
  const auto rest = [](const auto& mine, const auto& other) {
    std::string text;
    for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
      for (int n = other[p]; n < mine[p]; ++n) {
        text +=
            (text.empty() ? "" : " ") + std::string(primitive_info(static_cast<Primitive>(p)).name);
      }
    }
    return text.empty() ? std::string("nothing") : text;
  };
  const std::string only_a = rest(counts_a, counts_b);
  const std::string only_b = rest(counts_b, counts_a);
  if (only_a != "nothing" || only_b != "nothing") return only_a + " = " + only_b;
  std::string same;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const auto primitive = static_cast<Primitive>(p);
    if (counts_a[p] == 0 || primitive == Primitive::kReduce) continue;
    same += (same.empty() ? "" : " ") + std::string(primitive_info(primitive).name);
  }
  if (structure_hash(a.graph()) == structure_hash(b.graph()))
    return "one graph matched in two ways, with " + same;
  return "the same primitives in another way: " + same;
}

std::string ratio(std::size_t a, std::size_t b) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f",
                b == 0 ? 1.0 : static_cast<double>(a) / static_cast<double>(b));
  return text;
}

// How many members of a class the default rules may list on average before a depth counts as redundant.
constexpr double kRedundant = 1.2;

// The table of one specification: what depth limits list, and the families of what is still enumerated twice. Adds the depths
// that are redundant to `redundant`.
std::string table(const SmallSpace& small, const Classes& classes, std::string& redundant) {
  std::ostringstream out;
  out << "## " << small.name << ": " << small.doc << "\n\n"
      << classes.spec().text() << "; signature " << classes.signature().hex() << "\n\n";
  out << "depth    raw  exact   kept  classes   keys  raw/class  exact/class  kept/class\n";
  int deepest = 0;
  for (const Member& member : classes.members()) deepest = std::max(deepest, member.depth);
  for (int depth = 1; depth <= deepest; ++depth) {
    std::size_t raw = 0;
    std::size_t exact = 0;
    std::size_t kept = 0;
    std::set<std::size_t> groups;
    std::set<std::size_t> kept_groups;
    std::set<Hash128> keys;
    for (const Member& member : classes.members()) {
      if (member.depth > depth) continue;
      ++raw;
      exact += member.exact;
      kept += member.kept;
      groups.insert(member.group);
      if (member.kept) kept_groups.insert(member.group);
      if (member.exact) keys.insert(member.key);
    }
    char line[160];
    std::snprintf(line, sizeof line, "%5d %6zu %6zu %6zu %8zu %6zu %10s %12s %11s\n", depth, raw,
                  exact, kept, groups.size(), keys.size(), ratio(raw, groups.size()).c_str(),
                  ratio(exact, groups.size()).c_str(), ratio(kept, kept_groups.size()).c_str());
    out << line;
    if (static_cast<double>(kept) > kRedundant * static_cast<double>(kept_groups.size()))
      redundant += small.name + ", depth " + std::to_string(depth) + ": " +
                   ratio(kept, kept_groups.size()) + "\n";
  }
  std::map<std::string, std::pair<std::size_t, std::string>> families;
  std::map<std::size_t, const Member*> first;
  std::vector<const Member*> order;
  for (const Member& member : classes.members()) {
    if (member.exact) order.push_back(&member);
  }
  std::sort(order.begin(), order.end(), [](const Member* a, const Member* b) {
    return std::pair(a->depth, a->op.structure()) < std::pair(b->depth, b->op.structure());
  });
  for (const Member* member : order) {
    const auto [place, is_new] = first.try_emplace(member->group, member);
    if (is_new) continue;
    auto& entry = families[family(place->second->op, member->op)];
    if (entry.first++ == 0)
      entry.second = "    " + one_line(place->second->op) + "\n    " + one_line(member->op) + "\n";
  }
  out << "\n";
  std::vector<std::pair<std::size_t, std::string>> by_count;
  for (const auto& [name, entry] : families) by_count.emplace_back(entry.first, name);
  std::sort(by_count.begin(), by_count.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::size_t others = 0;
  for (const auto& [count, name] : by_count) {
    if (count < 3 && by_count.size() > 8) {
      others += count;
    } else {
      out << count << " repeated: " << name << "\n" << families[name].second;
    }
  }
  if (others > 0) out << others << " repeated: families of one or two\n";
  if (classes.undecided() > 0)
    out << classes.undecided() << " pairs of keys undecided, counted as different\n";
  if (!by_count.empty()) out << "\n";
  return out.str();
}

const std::vector<std::pair<SmallSpace, Classes>>& all_classes() {
  static const auto* all = [] {
    auto* list = new std::vector<std::pair<SmallSpace, Classes>>;
    for (const SmallSpace& small : small_spaces()) list->emplace_back(small, Classes(small));
    return list;
  }();
  return *all;
}

TEST(Classes, ExactRulesLoseNoneAndTakeNoMoreSteps) {
  for (const auto& [small, classes] : all_classes()) {
    // Taken for different operators, which hides nothing.
    EXPECT_LE(classes.undecided(), 4U) << small.name;
    EXPECT_GT(classes.members().size(), 10U) << small.name;
    std::map<std::size_t, int> least;
    for (const Member& member : classes.members()) {
      if (!member.exact) continue;
      const auto [place, is_new] = least.try_emplace(member.group, member.depth);
      place->second = std::min(place->second, member.depth);
    }
    std::set<std::size_t> told;
    for (const Member& member : classes.members()) {
      const auto place = least.find(member.group);
      if (place != least.end() && place->second <= member.depth) continue;
      if (!told.insert(member.group).second) continue;
      ChildGenerator generator(classes.spec(), exact_rules());
      ADD_FAILURE() << small.name << (place == least.end() ? ": lost\n" : ": takes more steps\n")
                    << member.op.text()
                    << find_path(generator, member.op, classes.spec().limits().max_depth).obstacle;
    }
  }
}

TEST(Classes, TheTablesInGitAreWhatIsListed) {
  std::string text =
      "# Written by syno_space_tests (Classes.TheTablesInGitAreWhatIsListed) with "
      "SYNO_UPDATE_GOLDEN=1.\n"
      "# Operators of small specifications of at most so many steps: structures without rules "
      "(restrictions alone),\n"
      "# with exact rules, with the default rules; classes of equal operators, decided by brute "
      "force over all terms;\n"
      "# semantic keys of what exact rules list. Families of what exact rules list more than once, "
      "with an example each.\n\n";
  std::string redundant;
  for (const auto& [small, classes] : all_classes()) text += table(small, classes, redundant);
  text += "## kept/class above 1.2\n\n" + redundant;
  expect_golden("tests/golden/search/small_spaces.txt", text,
                "counts of small spaces have changed; if they are meant to, run\n"
                "  SYNO_UPDATE_GOLDEN=1 build/release/syno_space_tests "
                "--gtest_filter='Classes.*'\nand read the difference");
}

// A key that joins two operators would hide a loss.
TEST(Classes, OperatorsOfOneKeyAreTheSame) {
  for (const auto& [small, classes] : all_classes()) {
    std::map<Hash128, std::pair<FitMask, std::uint64_t>> invariants;
    std::size_t met = 0;
    for (const Member& member : classes.members()) {
      if (++met % 7 != 0 && invariants.contains(member.key)) continue;
      const Operator local = member.op.in_table(classes.spec().variables());
      const FitMask fit = fit_of(local, classes.spec());
      std::uint64_t invariant = 0;
      for (std::size_t b = 0; b < classes.spec().bindings().size(); ++b) {
        if (fit >> b & 1)
          invariant = mix_words(
              invariant, oracle::invariant(oracle::term_set(local, classes.spec().bindings()[b])));
      }
      const auto [place, is_new] = invariants.try_emplace(member.key, fit, invariant);
      EXPECT_EQ(place->second, std::pair(fit, invariant)) << small.name << "\n" << member.op.text();
    }
  }
}

}  // namespace
}  // namespace syno
