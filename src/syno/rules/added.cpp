#include "syno/rules/added.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/support/error.h"
#include "syno/support/hash.h"
#include "syno/support/text.h"

namespace syno {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string called(const AddedRule& rule) {
  return "rule '" + rule.id + " " + rule.name + "'";
}

std::string sizes_text(const std::vector<Size>& sizes, const Variables& variables) {
  std::vector<std::string> texts;
  for (const Size& size : sizes) texts.push_back(size.text(variables));
  std::sort(texts.begin(), texts.end());
  return "[" + join(texts, ", ") + "]";
}

std::vector<Size> frontier_sizes(const Graph& graph) {
  std::vector<Size> sizes;
  for (const CoordinateId id : graph.frontier()) sizes.push_back(graph.extent(id));
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// What is kept must be a graph of the same specification that is complete where the rejected one is.
void check_kept(const AddedRule& rule, const RuleContext& context, const Graph& kept) {
  const Variables& variables = *context.graph.variables();
  if (kept.variables() != context.graph.variables() || kept.output() != context.graph.output()) {
    throw Complaint(called(rule) + " keeps a graph of other variables or another output")
        .expected("the output " + shape_text(context.graph.output(), variables),
                  shape_text(kept.output(), *kept.variables()))
        .error();
  }
  Graph rejected = context.graph;
  rejected.apply(context.step);
  const std::vector<Size> wanted = frontier_sizes(rejected);
  const std::vector<Size> found = frontier_sizes(kept);
  if (found == wanted) return;
  throw Complaint(called(rule) + " keeps a graph that reads the data at other sizes")
      .where("what it rejects:\n" + graph_text(rejected) + "  what it keeps:\n" + graph_text(kept))
      .expected("sizes " + sizes_text(wanted, variables), sizes_text(found, variables))
      .error();
}

void check(const AddedRule& rule) {
  const auto word = [](const char* what, const std::string& text) {
    if (is_word(text)) return;
    throw Complaint(text.empty() ? std::string("a rule has no ") + what
                                 : "'" + text + "' cannot be the " + what + " of a rule")
        .expected("letters, digits, '-', '_' and '.', such as U1 or no-shift-after-unfold",
                  text.empty() ? "nothing" : "'" + text + "'")
        .error();
  };
  word("id", rule.id);
  word("name", rule.name);
  const std::string kind(rule_kind_name(rule.kind));
  if (rule.kind == RuleKind::kRestriction) {
    if (rule.rewrite) {
      throw Complaint(called(rule) + " is a restriction and has a rewrite")
          .expected("a restriction without a rewrite", "a rewrite")
          .hint("make it exact or approximate, or remove the rewrite")
          .error();
    }
    if (!rule.matches)
      throw UserError(called(rule) + " is a restriction and does not say which steps match");
    return;
  }
  if (rule.rewrite) return;
  throw Complaint(called(rule) + " is " + kind + " and has no rewrite")
      .expected("the graph that is kept instead of the rejected one", "nothing")
      .hint("give it a rewrite, or make it a restriction, which loses what it rejects")
      .error();
}

}  // namespace

OwnedRule::OwnedRule(AddedRule source)
    : source_(std::move(source)), matches_(source_.matches), rule_{} {
  check(source_);
  if (!matches_) matches_ = [](const RuleContext&) { return true; };
  if (source_.rewrite) {
    rewrite_ = [this](const RuleContext& context) {
      std::optional<Graph> kept = source_.rewrite(context);
      if (kept) check_kept(source_, context, *kept);
      return kept;
    };
  }
  rule_.id = source_.id;
  rule_.name = source_.name;
  rule_.kind = source_.kind;
  rule_.doc = source_.doc;
  version_ = Hasher("rule").add(source_.doc).add(source_.version).finish().hex().substr(0, 8);
  rule_.version = version_;
  rule_.steps = source_.steps;
  rule_.matches = RuleFunction<bool>(&matches_);
  if (rewrite_) rule_.rewrite = RuleFunction<std::optional<Graph>>(&rewrite_);
}

}  // namespace syno
