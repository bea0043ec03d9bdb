#include "syno/rules/catalogue.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <sstream>

#include "syno/rules/docs.h"
#include "syno/rules/rule_test.h"
#include "syno/support/error.h"
#include "syno/support/golden_test.h"
#include "syno/support/source_dir_test.h"

namespace syno {
namespace {

using namespace rule_test;

// Rejected by R6a alone.
constexpr const char* kShiftAboveWeight = "contract o0:drop o1:keep\nshift o1 1 -> c";

std::string read_source(const std::string& path) {
  std::ifstream file(std::string(kSourceDir) + "/" + path);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const Rule* rejecting_rule(const RuleSet& rules, const Specification& spec, const char* lines) {
  const Situation situation = read(spec, lines);
  return rules.rejecting_rule({spec, situation.graph, situation.step});
}

TEST(Catalogue, IdsAndNamesAreUnique) {
  std::set<std::string_view> seen;
  for (const Rule* rule : catalogue()) {
    EXPECT_TRUE(seen.insert(rule->id).second) << rule->id;
    EXPECT_TRUE(seen.insert(rule->name).second) << rule->name;
  }
  EXPECT_GE(catalogue().size(), 17U);
}

TEST(Catalogue, EveryDocHasItsHeadingsInOrder) {
  for (const Rule* rule : catalogue()) {
    const std::vector<RuleDocPart> parts = rule_doc_parts(*rule);
    ASSERT_EQ(parts.size(), kRuleHeadings.size()) << rule->id;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].heading, kRuleHeadings[i]) << rule->id;
      EXPECT_FALSE(parts[i].text.empty()) << rule->id << " " << kRuleHeadings[i];
    }
  }
}

TEST(Catalogue, SoundnessInTheDocIsTheKindOfTheRule) {
  for (const Rule* rule : catalogue()) {
    const std::string text = rule_doc_parts(*rule).at(3).text;
    EXPECT_TRUE(text.starts_with(rule_kind_name(rule->kind))) << rule->id << ": " << text;
  }
}

// The releases that the changelog has a section about.
TEST(Catalogue, StatusNamesAReleaseOfTheChangelog) {
  const std::string changelog = read_source("CHANGELOG.md");
  ASSERT_NE(changelog.find("\n## Unreleased\n"), std::string::npos);
  for (const Rule* rule : catalogue()) {
    const std::string status = rule_doc_parts(*rule).at(4).text;
    constexpr std::string_view kSince = "stable since ";
    if (status == kUnreleased) continue;
    ASSERT_TRUE(status.starts_with(kSince)) << rule->id << ": " << status;
    EXPECT_NE(changelog.find("\n## " + status.substr(kSince.size()) + "."), std::string::npos)
        << rule->id << ": " << status;
  }
}

// Space files and results name it. A rule that rejects other steps changes its version, and with it this one.
TEST(Catalogue, TheVersionOfTheDefaultSetIsTheOneThatFilesName) {
  EXPECT_EQ(RuleSet().version(), "09fecc4c34bd");
}

// The constant of every rule stands in its test, rejected and left alone.
TEST(Catalogue, EveryRuleHasATestOfWhatItRejectsAndOfWhatItKeeps) {
  const std::filesystem::path folder = std::string(kSourceDir) + "/src/syno/rules/catalogue";
  const std::regex declared("const Rule (k\\w+)\\{");
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".cpp" || name.ends_with("_test")) continue;
    const std::string source = read_source("src/syno/rules/catalogue/" + name + ".cpp");
    const std::string test = read_source("src/syno/rules/catalogue/" + name + "_test.cpp");
    for (std::sregex_iterator rule(source.begin(), source.end(), declared), end; rule != end;
         ++rule) {
      ++count;
      const std::string constant = (*rule)[1];
      for (const char* expectation : {"EXPECT_TRUE", "EXPECT_FALSE"}) {
        const std::regex used(std::string(expectation) + "\\(\\s*rejected\\w*\\(\\s*" + constant);
        EXPECT_TRUE(std::regex_search(test, used))
            << name << "_test.cpp: no " << expectation << "(rejected(" << constant << ", ...))";
      }
    }
  }
  EXPECT_EQ(count, catalogue().size());
}

TEST(Catalogue, ADocWithoutAHeadingIsAnError) {
  Rule rule = kShiftOfReduction;
  rule.doc = "What: a\nWhy: b\nSoundness: exact";
  try {
    rule_doc_parts(rule);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("rule R15a: 'When:' is expected"), std::string::npos)
        << error.what();
  }
}

TEST(Catalogue, RestrictionsAloneHaveNoRewrite) {
  for (const Rule* rule : catalogue()) {
    EXPECT_NE(rule->matches, nullptr) << rule->id;
    if (rule->rejects_match != nullptr) continue;  // About complete graphs.
    EXPECT_EQ(rule->rewrite == nullptr, rule->kind == RuleKind::kRestriction) << rule->id;
  }
}

TEST(Catalogue, ThePageInDocsIsTheOneOfTheRules) {
  expect_golden("docs/rules.md", rules_page(),
                "docs/rules.md is out of date: run syno_rules_tests with SYNO_UPDATE_GOLDEN=1");
}

TEST(RuleSet, StartsWithAllRulesOn) {
  const RuleSet rules;
  EXPECT_EQ(rules.rules().size(), catalogue().size());
  for (const Rule* rule : catalogue()) EXPECT_TRUE(rules.is_on(rule->id));
}

TEST(RuleSet, NoneAndRestrictionsSayWhatTheyHold) {
  EXPECT_TRUE(RuleSet::none().rules().empty());
  const RuleSet restrictions = RuleSet::restrictions();
  for (const Rule* rule : catalogue()) {
    EXPECT_EQ(restrictions.is_on(rule->name), rule->kind == RuleKind::kRestriction) << rule->id;
    EXPECT_FALSE(RuleSet::none().is_on(rule->id));
  }
}

TEST(RuleSet, SwitchesByIdAndByName) {
  const Specification spec(roomy());
  RuleSet rules;
  EXPECT_EQ(rejecting_rule(rules, spec, kShiftAboveWeight), &kViewAboveShare);
  rules.set("R6a", false);
  EXPECT_FALSE(rules.is_on("view-above-share"));
  EXPECT_EQ(rejecting_rule(rules, spec, kShiftAboveWeight), nullptr);
  rules.set("view-above-share", true);
  EXPECT_EQ(rejecting_rule(rules, spec, kShiftAboveWeight), &kViewAboveShare);
  EXPECT_EQ(rules.version(), RuleSet().version()) << "the order of the catalogue is kept";
}

TEST(RuleSet, IsAValue) {
  const RuleSet all;
  RuleSet copy = all;
  copy.set("R6a", false);
  EXPECT_TRUE(all.is_on("R6a"));
}

TEST(RuleSet, GuardsLookAtTheRestrictionsThatAreOn) {
  // What R6b keeps drops the result of a Split, which R8 leaves out.
  const char* lines = "split o1 o0 -> c\nmerge c s -> q m\ncontract q:drop m:drop o2:keep";
  const Specification spec(roomy());
  RuleSet rules;
  EXPECT_EQ(rejecting_rule(rules, spec, lines), nullptr);
  rules.set("R8", false);
  EXPECT_EQ(rejecting_rule(rules, spec, lines), &kDroppedPieces);
  rules.set("R8", true);
  EXPECT_EQ(rejecting_rule(rules, spec, lines), nullptr);
  EXPECT_EQ(rejecting_rule(RuleSet::none(), spec, lines), nullptr);
}

TEST(RuleSet, VersionChangesWithEverySwitch) {
  std::set<std::string> versions{RuleSet().version(), RuleSet::none().version()};
  for (const Rule* rule : catalogue()) {
    RuleSet rules;
    rules.set(rule->id, false);
    EXPECT_TRUE(versions.insert(rules.version()).second) << rule->id;
    rules.set(rule->id, true);
    EXPECT_EQ(rules.version(), RuleSet().version()) << rule->id;
  }
  EXPECT_EQ(RuleSet().version().size(), 12U);
}

TEST(RuleSet, AnUnknownRuleIsAnErrorThatListsTheRules) {
  RuleSet rules;
  for (const char* wanted : {"R99", "", "r6a"}) {
    try {
      rules.set(wanted, false);
      FAIL() << wanted;
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find(std::string("unknown rule '") + wanted + "'\n  known rules: R1a "), 0U)
          << text;
      EXPECT_NE(text.find("R6a view-above-share, R6b dropped-pieces"), std::string::npos) << text;
    }
  }
  EXPECT_THROW(rules.is_on("R99"), UserError);
}

}  // namespace
}  // namespace syno
