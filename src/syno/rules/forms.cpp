#include "syno/rules/forms.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

#include "syno/rules/rebuild.h"
#include "syno/support/at.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

[[noreturn]] void fail(std::string_view line, const std::string& what) {
  throw Complaint("a form of a rule has a line that is none: " + what)
      .where("\"" + std::string(line) + "\"")
      .error();
}

}  // namespace

// Reads lines, with one number for each name in both forms.
class ParsedForms::Reader {
 public:
  std::vector<Line> rejected(std::string_view text) {
    std::vector<Line> lines = read(text);
    if (lines.empty() || lines.size() > kMostLines) fail(text, "too few lines, or too many");
    for (const Line& line : lines) {
      if (&line != &lines.back() && line.out[0] < 0)
        fail(text, "a line before the last makes nothing");
      for (const Number name : line.argument) owner_.emplace(name, &line - lines.data());
      if (primitive_info(line.primitive).slides())
        window_.emplace(line.in[1], &line - lines.data());
    }
    return lines;
  }

  // Names of arguments become the lines that have them.
  std::vector<Line> kept(std::string_view text) {
    std::vector<Line> lines = read(text);
    for (Line& line : lines) {
      const bool slides = primitive_info(line.primitive).slides();
      if (slides) line.argument.push_back(line.in[1]);
      const auto& lines_of = slides ? window_ : owner_;
      for (Number& name : line.argument) {
        const auto found = lines_of.find(name);
        if (found == lines_of.end()) fail(text, "its argument is in no rejected line");
        name = static_cast<Number>(found->second);
      }
    }
    return lines;
  }

 private:
  std::vector<Line> read(std::string_view text) {
    std::vector<Line> lines;
    for (const std::string_view line : split_lines(text)) {
      if (!trim(line).empty()) lines.push_back(read_line(trim(line)));
    }
    return lines;
  }

  Line read_line(std::string_view text) {
    std::istringstream words{std::string(text)};
    std::string word;
    words >> word;
    const auto primitive = find_primitive(word);
    if (!primitive) fail(text, "it begins with no primitive");
    const PrimitiveInfo& info = primitive_info(*primitive);
    if (info.kind == StepKind::kContraction) fail(text, "contractions are no part of forms");
    Line line;
    line.primitive = *primitive;
    for (int i = 0; i < info.consumes; ++i) line.in[at(i)] = name(text, words);
    if (takes_size(info.argument) || info.argument == Argument::kAmount) {
      words >> word;
      std::istringstream factors(word);
      for (std::string factor; std::getline(factors, factor, '*');)
        line.argument.push_back(number(text, factor));
    }
    if (!(words >> word)) return line;
    if (word != "->") fail(text, "it goes on after its argument");
    for (int i = 0; i < info.produces; ++i) line.out[at(i)] = name(text, words);
    return line;
  }

  Number name(std::string_view line, std::istringstream& words) {
    std::string word;
    if (!(words >> word)) fail(line, "a name is missing");
    return number(line, word);
  }

  Number number(std::string_view line, const std::string& word) {
    const auto [place, is_new] = names_.try_emplace(word, static_cast<Number>(names_.size()));
    if (names_.size() > kMostNames) fail(line, "there are too many names");
    return place->second;
  }

  std::map<std::string, Number> names_;
  /// The rejected line with an argument, and the one with a window.
  std::map<Number, std::ptrdiff_t> owner_;
  std::map<Number, std::ptrdiff_t> window_;
};

ParsedForms::ParsedForms(const Forms& forms) {
  Reader reader;
  rejected_ = reader.rejected(forms.rejected);
  kept_ = reader.kept(forms.kept);
}

bool ParsedForms::find(const RuleContext& context, Place& place) const {
  place.coordinates.fill(kNoCoordinate);
  const Graph& graph = context.graph;
  for (std::size_t l = rejected_.size(); l-- > 0;) {
    const Line& line = rejected_[l];
    const Step* step = &context.step;
    if (l + 1 < rejected_.size()) {
      const CoordinateId made = place.coordinates[at(line.out[0])];
      if (made == kNoCoordinate) return false;
      step = graph.producer(made);
      if (step == nullptr) return false;
      for (std::size_t i = 0; i < line.out.size() && line.out[i] >= 0; ++i) {
        const CoordinateId id = place.coordinates[at(line.out[i])];
        if (id != step->out[i] || graph.weight_count(id) > 0) return false;
      }
    }
    if (step->primitive != line.primitive) return false;
    place.steps[l] = step;
    for (std::size_t j = 0; j < line.in.size() && line.in[j] >= 0; ++j) {
      CoordinateId& known = place.coordinates[at(line.in[j])];
      if (known != kNoCoordinate && known != step->in[j]) return false;
      known = step->in[j];
    }
  }
  return true;
}

std::optional<Graph> ParsedForms::kept(const RuleContext& context) const {
  Place place;
  if (!find(context, place)) return std::nullopt;
  Rebuild rebuild(context);
  for (std::size_t s = 0; s < context.graph.steps().size(); ++s) {
    const Step* step = &context.graph.steps()[s];
    if (std::find(place.steps.begin(), place.steps.end(), step) == place.steps.end())
      rebuild.copy(s);
  }
  std::array<CoordinateId, kMostNames> now;
  for (std::size_t name = 0; name < kMostNames; ++name) {
    const CoordinateId id = place.coordinates[name];
    now[name] = id == kNoCoordinate ? kNoCoordinate : rebuild.now(id);
  }
  for (const Line& line : kept_) {
    Step step;
    step.primitive = line.primitive;
    for (std::size_t j = 0; j < line.in.size() && line.in[j] >= 0; ++j)
      step.in[j] = now[at(line.in[j])];
    for (const Number from : line.argument) {
      const Step& rejected = *place.steps[at(from)];
      if (takes_size(step.info().argument)) step.size = step.size * rejected.size;
      step.amount = rejected.amount;
      step.causal = rejected.causal;
    }
    const Step taken = rebuild.add(std::move(step));
    for (std::size_t i = 0; i < line.out.size() && line.out[i] >= 0; ++i)
      now[at(line.out[i])] = taken.out[i];
  }
  return rebuild.graph();
}

}  // namespace syno
