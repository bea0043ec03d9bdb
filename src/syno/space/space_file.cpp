#include "syno/space/space_file.h"

#include <algorithm>
#include <istream>
#include <map>
#include <ostream>
#include <sstream>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::string_view kMagic = "syno enumeration 1";
constexpr std::string_view kKind = "syno enumeration ";
constexpr std::size_t kMostLines = 4096;
constexpr std::size_t kLongestLine = 1 << 16;
constexpr const char* kAgain = "run the enumeration again without --resume; it writes a new file";

Hash128 check_sum(const Facts& facts) {
  Hasher hasher("space file header");
  for (const auto& [name, value] : facts) hasher.add(name).add(value);
  return hasher.finish();
}

// A line without its end; false at the end of the file.
bool read_line(std::istream& in, std::string& line) {
  line.clear();
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n') return true;
    line += static_cast<char>(c);
    if (line.size() > kLongestLine) return false;
  }
  return false;
}

[[noreturn]] void damaged(const std::string& name, const std::string& why) {
  throw Complaint("the file '" + name + "' of an enumeration is damaged: " + why)
      .hint(kAgain)
      .error();
}

Facts read_header(std::istream& in, const std::string& name) {
  std::string line;
  read_line(in, line);
  if (line != kMagic) {
    const bool newer = line.starts_with(kKind);
    throw Complaint("'" + name + "' is no file of an enumeration that this Syno can read")
        .expected("a file that `syno enumerate --file` wrote, which begins with \"" +
                      std::string(kMagic) + "\"",
                  line.empty() ? "an empty file"
                  : newer      ? "\"" + line + "\""
                               : "something else")
        .hint(newer ? "install the Syno that wrote it, or name another file" : "name another file")
        .error();
  }
  Facts facts;
  while (facts.size() <= kMostLines) {
    if (!read_line(in, line)) damaged(name, "it ends inside what it was made for");
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) damaged(name, "a line says nothing");
    std::string key = line.substr(0, tab);
    std::string value = line.substr(tab + 1);
    if (key == "end") {
      if (value != check_sum(facts).hex())
        damaged(name, "the check sum of what it was made for is wrong");
      return facts;
    }
    facts.emplace_back(std::move(key), std::move(value));
  }
  damaged(name, "it has too many lines");
}

struct Difference {
  std::string name;
  std::string expected;
  std::string found;
};

std::vector<Difference> differences(const Facts& expected, const Facts& found,
                                    const std::string& absent) {
  const std::map<std::string, std::string> in_file(found.begin(), found.end());
  const std::map<std::string, std::string> asked(expected.begin(), expected.end());
  std::vector<Difference> list;
  for (const auto& [name, value] : expected) {
    const auto place = in_file.find(name);
    if (place == in_file.end()) {
      list.push_back({name, value, absent});
    } else if (place->second != value) {
      list.push_back({name, value, place->second});
    }
  }
  for (const auto& [name, value] : found) {
    if (!asked.contains(name)) list.push_back({name, absent, value});
  }
  return list;
}

void refuse_other(const std::string& file, const std::string& what, const Facts& expected,
                  const Facts& found, const std::string& absent, const std::string& hint) {
  const std::vector<Difference> all = differences(expected, found, absent);
  if (all.empty()) return;
  Complaint complaint("the file '" + file + "' was made " + what);
  complaint.where(all.front().name).expected(all.front().expected, all.front().found);
  std::string text = complaint.error().what();
  if (all.size() > 1) {
    std::vector<std::string> others;
    for (std::size_t i = 1; i < all.size() && i < 6; ++i) others.push_back(all[i].name);
    text += "\n  other differences: " + join(others, ", ");
    if (all.size() > 6) text += " and " + std::to_string(all.size() - 6) + " more";
  }
  throw UserError(text + "\n  hint: " + hint);
}

// Facts of rules are those whose names begin so.
constexpr std::string_view kRule = "rule ";

}  // namespace

Facts specification_facts(const Specification& spec) {
  const Variables& variables = *spec.variables();
  Facts facts;
  facts.emplace_back("input", shape_text(spec.input(), variables));
  facts.emplace_back("output", shape_text(spec.output(), variables));
  for (std::size_t v = 0; v < variables.count(); ++v) {
    const VariableInfo& info = spec.variable(v);
    facts.emplace_back("variable " + info.name,
                       variable_text(info) + (info.primary ? ", primary" : ", coefficient"));
  }
  for (std::size_t b = 0; b < spec.bindings().size(); ++b) {
    std::vector<std::string> parts;
    for (std::size_t v = 0; v < variables.count(); ++v)
      parts.push_back(variables.name(v) + "=" + std::to_string(spec.bindings()[b][v]));
    std::string name = "binding " + join(parts, ",");
    const std::int64_t layers = spec.multiplicities()[b];
    std::string value = std::to_string(layers) + (layers == 1 ? " layer" : " layers");
    if (!spec.source().layer_macs.empty())
      value += ", layer_macs " + number_text(spec.source().layer_macs[b]);
    facts.emplace_back(std::move(name), std::move(value));
  }
  std::vector<std::string> pairs;
  for (const auto& [out, in] : spec.passed_through())
    pairs.push_back(std::to_string(out) + ":" + std::to_string(in));
  std::sort(pairs.begin(), pairs.end());
  facts.emplace_back("passed through", pairs.empty() ? "none" : join(pairs, " "));
  for (const Option<Limits>& option : limit_options())
    facts.emplace_back("limit " + std::string(option.name), number_text(option.get(spec.limits())));
  return facts;
}

Facts rule_facts(const RuleSet& rules) {
  Facts facts;
  for (const Rule* rule : rules.rules())
    facts.emplace_back(std::string(kRule) + std::string(rule->id) + " " + std::string(rule->name),
                       "on, version " + std::string(rule->version));
  return facts;
}

void save_space(std::ostream& out, const Space& space, const Specification& spec,
                const RuleSet& rules) {
  Facts facts = specification_facts(spec);
  for (auto& fact : rule_facts(rules)) facts.push_back(std::move(fact));
  out << kMagic << '\n';
  for (const auto& [name, value] : facts) out << name << '\t' << value << '\n';
  out << "end\t" << check_sum(facts).hex() << '\n';
  space.save(out);
}

Space load_space(std::istream& in, const std::string& name, const Specification& spec,
                 const RuleSet& rules) {
  Facts of_spec;
  Facts of_rules;
  for (auto& fact : read_header(in, name))
    (fact.first.starts_with(kRule) ? of_rules : of_spec).push_back(std::move(fact));
  refuse_other(name, "for another specification", specification_facts(spec), of_spec, "nothing",
               "name another file, or the specification that it was made for");
  refuse_other(name, "with other rules", rule_facts(rules), of_rules, "off",
               "name another file, or the same rules (--rule ID=off)");
  // Space::load reads from the beginning of its stream.
  std::stringstream rest(std::ios::in | std::ios::out | std::ios::binary);
  rest << in.rdbuf();
  if (!rest) damaged(name, "it ends too early");
  if (!rest.view().starts_with("syno space ")) damaged(name, "the space itself is not in it");
  try {
    return Space::load(rest, spec, rules.version());
  } catch (const UserError& error) {
    throw UserError(std::string(error.what()) + "\n  in '" + name + "'");
  }
}

}  // namespace syno
