#include "syno/rules/docs.h"

#include <algorithm>

#include "syno/rules/catalogue.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::string_view kIntroduction =
    R"(<!-- Generated from src/syno/rules/catalogue by the test Catalogue.ThePageInDocsIsTheOneOfTheRules. Edit the docs
     of the rules and run `SYNO_UPDATE_GOLDEN=1 syno_rules_tests`. -->

# Rules

A rule checks one step on top of a partial graph and may reject it, so that a search does not build the same operator
twice. There are three kinds of rules:

- **exact**: another form of the same operator stays reachable. Such a rule rejects a step only if the form that it keeps
  is legal under every binding that the rejected graph fits, passes the restrictions, takes no more steps, budget or
  capped resources, and lets chains of views grow as far.
- **approximate**: a near-equal operator stays reachable, which differs on a fraction of the outputs, at borders and at
  the ends of blocks. These rules are on by default, as in the paper; the heading Soundness says what each of them loses. Such
  a rule fires only if at most half of the outputs of any layer differ, and at most one in eight once primary sizes are 64
  times as large; a test measures the fraction on random graphs. `rules_off=["approximate"]` and `--rule approximate=off`
  switch all of them off; then no operator is lost.
- **restriction**: the step is left out on purpose, and its operators are outside the space.

Graphs are built from the output to the input, and "below" means nearer to the output. `split(i, j)` is `B*i + j` with
`B = |j|`; `merge(i, B)` is the pair `i div B`, `i mod B`. Each rule can be switched off by its id or its name.

<a id="rules-of-ones-own"></a>

## Custom rules

A rule is a function of a partial graph and of the step on top of it. A restriction returns whether the step is left out.
An exact or approximate rule returns the graph that is kept instead, or `None`; the same guard applies to it as to the
rules of the catalogue. A rule must depend on nothing but the graph and the step.

```python
import syno


@syno.rule("U1", "no-shift-of-piece", kind="restriction", steps=["shift"])
def no_shift_of_piece(graph, step):
    """No Shift of a result of a Merge."""
    return graph.maker(step.inputs[0]) == "merge"


@syno.rule("U2", "stride-of-stride", kind="exact", steps=["stride"])
def stride_of_stride(graph, step):
    """Two Strides of one coordinate are one Stride."""
    below = graph.producer(step.inputs[0])
    if below is None or below.op != "stride" or graph.weights(step.inputs[0]) > 0:
        return None
    kept = graph.start()
    for other in graph.steps:
        if other.out == below.out:
            kept = kept.then("stride", *below.inputs, size=f"{below.size}*{step.size}")
        else:
            kept = kept.taking(other)
    return kept


specification = syno.Specification(
    "[C_in, H]", "[C_out, H]", ["C_in: 2", "C_out: 2", "H: 1"], ["s=2: 1"],
    bindings=["C_in=16, C_out=16, H=32"],
)
space = syno.Space.enumerate(specification, depth=5, rules=[no_shift_of_piece, stride_of_stride])
print(space.rules_added, space.rejections()["U1 no-shift-of-piece"] > 0)
```

```text
('U1 no-shift-of-piece', 'U2 stride-of-stride') True
```

`graph` is a `syno.PartialGraph`. It has `frontier` (coordinates and their sizes), `steps`, `producer(c)`, `maker(c)`,
`weights(c)` and `text`, and the methods `start`, `then` and `taking` to build the graph that is kept. `Sampler`,
`Space.enumerate`, `explain` and `why_not` accept `rules=[...]`; `syno enumerate`, `sample`, `explain` and `why-not` accept
`--rule-file my_rules.py`. The id, name, documentation and `version` of a rule are part of the version of the rule set, so
a space file of another rule set is refused; change `version` when the function changes. An exception in a rule ends the
enumeration, and the message names the rule. In C++, use `RuleSet::add`.

`syno rules check my_rules.py` and `syno.check_rule` test a rule: they generate random graphs and compare what the rule
rejects with what it keeps, by semantic keys and by random values in the interpreter.

```python
@syno.rule("U3", "parts-exchanged", kind="exact", steps=["split"])
def parts_exchanged(graph, step):
    """The parts of a Split in one order, which is wrong."""
    major, minor = step.inputs
    return graph.then("split", minor, major) if major > minor else None


small = specification.with_changes(bindings=["C_in=4, C_out=4, H=8"])
found = syno.check_rule(parts_exchanged, small, trials=20)
print(found.compared, found.different > 0, found.sound)
```

```text
20 True False
```
)";

// Text in a table cell or paragraph: `|` would end a cell, and `*` would set italics.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::vector<RuleDocPart> rule_doc_parts(const Rule& rule) {
  std::vector<RuleDocPart> parts;
  const auto fail = [&](const std::string& found) {
    const std::string next = parts.size() < kRuleHeadings.size()
                                 ? "'" + std::string(kRuleHeadings[parts.size()]) + ":'"
                                 : "the end";
    throw InternalError("rule " + std::string(rule.id) + ": " + next + " is expected, " + found);
  };
  for (std::string_view line : split_lines(rule.doc)) {
    line = trim(line);
    const std::size_t colon = line.find(':');
    const bool starts = parts.size() < kRuleHeadings.size() && colon != std::string_view::npos &&
                        line.substr(0, colon) == kRuleHeadings[parts.size()];
    if (starts) {
      parts.push_back({kRuleHeadings[parts.size()], std::string(trim(line.substr(colon + 1)))});
      continue;
    }
    // Any other line goes on with the part before, unless it is a heading out of order.
    const bool heading =
        std::any_of(kRuleHeadings.begin(), kRuleHeadings.end(),
                    [&](std::string_view other) { return line.substr(0, colon) == other; });
    if (parts.empty() || heading) fail("not '" + std::string(line) + "'");
    parts.back().text += " " + std::string(line);
  }
  if (parts.size() < kRuleHeadings.size()) fail("not the end");
  return parts;
}

std::string rule_summary(const Rule& rule) {
  const std::string_view doc = trim(rule.doc);
  const std::vector<std::string_view> lines = split_lines(doc);
  std::string summary;
  for (std::string_view line : lines) {
    line = trim(line);
    if (summary.empty()) {
      // A doc without headings is summed up by its first line.
      if (!line.starts_with("What:")) return std::string(line.empty() ? rule.name : line);
      summary = trim(line.substr(line.find(':') + 1));
      continue;
    }
    const bool next = std::any_of(
        kRuleHeadings.begin(), kRuleHeadings.end(),
        [&](std::string_view heading) { return line.starts_with(std::string(heading) + ":"); });
    if (next || line.empty()) break;
    summary += " " + std::string(line);
  }
  return summary.empty() ? std::string(rule.name) : summary;
}

std::string rules_page() {
  std::string page(kIntroduction);
  page += "\n| Id | Name | Kind | What |\n|---|---|---|---|\n";
  for (const Rule* rule : catalogue()) {
    const std::string id(rule->id);
    page += "| " + id + " | [" + std::string(rule->name) + "](#" + std::string(rule->name) +
            ") | " + std::string(rule_kind_name(rule->kind)) + " | " +
            escaped(rule_doc_parts(*rule).front().text) + " |\n";
  }
  for (const Rule* rule : catalogue()) {
    page += "\n## " + std::string(rule->name) + "\n\n" + std::string(rule->id) + ", " +
            std::string(rule_kind_name(rule->kind)) + ".\n\n";
    for (const RuleDocPart& part : rule_doc_parts(*rule))
      page += "- **" + std::string(part.heading) + ":** " + escaped(part.text) + "\n";
  }
  return page;
}

}  // namespace syno
