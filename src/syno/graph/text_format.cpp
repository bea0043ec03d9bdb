#include "syno/graph/text_format.h"

#include <algorithm>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// A line of the text format: words, and where each began.
struct Line {
  std::size_t number = 0;
  std::string_view text;
  std::vector<std::string_view> words;

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(message + "\n  in line " + std::to_string(number) + ": \"" + std::string(text) +
                    "\"");
  }
  std::string_view rest() const { return trim(text.substr(words[0].size())); }
};

std::vector<Line> read_lines(std::string_view text) {
  std::vector<Line> lines;
  std::size_t number = 0;
  for (std::string_view raw : split_lines(text)) {
    ++number;
    Line line{number, trim(raw.substr(0, raw.find('#'))), {}};
    for (std::size_t i = 0; i < line.text.size();) {
      const std::size_t begin = line.text.find_first_not_of(" \t", i);
      if (begin == std::string_view::npos) break;
      const std::size_t end = std::min(line.text.find_first_of(" \t", begin), line.text.size());
      line.words.push_back(line.text.substr(begin, end - begin));
      i = end;
    }
    if (!line.words.empty()) lines.push_back(line);
  }
  return lines;
}

class TextReader {
 public:
  explicit TextReader(std::string_view text, std::string_view header) : lines_(read_lines(text)) {
    if (lines_.empty())
      throw UserError("the text is empty\n  expected: a first line \"" + std::string(header) +
                      "\"");
    const Line& first = lines_.front();
    if (first.text != header) {
      const bool newer =
          first.words.size() == 3 && first.words[0] == "syno" &&
          header.substr(0, header.rfind(' ')) == first.text.substr(0, first.text.rfind(' '));
      first.fail(newer
                     ? "this version of the text format is not known: the file is from a newer Syno"
                     : "not a Syno text\n  expected: \"" + std::string(header) + "\"");
    }
  }

  ParsedText read(bool complete) {
    collect_variables();
    ParsedText parsed;
    bool has_output = false;
    bool has_match = false;
    for (std::size_t i = 1; i < lines_.size(); ++i) {
      line_ = &lines_[i];
      const std::string_view keyword = line_->words[0];
      if (has_match) line_->fail("nothing may follow the line 'match'");
      if (keyword == "out") {
        if (has_output) line_->fail("a second line 'out'");
        parsed.graph = Graph(variables_, shape());
        has_output = true;
        for (std::size_t d = 0; d < parsed.graph.output().size(); ++d) {
          names_.emplace_back("o" + std::to_string(d), static_cast<CoordinateId>(d));
        }
        continue;
      }
      if (!has_output) line_->fail("expected the line 'out' first");
      if (keyword == "in") {
        if (!complete) line_->fail("a partial graph has no line 'in'");
        if (parsed.input) line_->fail("a second line 'in'");
        parsed.input = shape();
      } else if (keyword == "match") {
        if (!complete) line_->fail("a partial graph has no line 'match'");
        for (std::size_t w = 1; w < line_->words.size(); ++w)
          parsed.match.push_back(coordinate(line_->words[w]));
        has_match = true;
      } else {
        read_step(parsed.graph);
      }
    }
    line_ = &lines_.back();
    if (!has_output) line_->fail("the line 'out' is missing");
    if (complete && !parsed.input) line_->fail("the line 'in' is missing");
    if (complete && !has_match) line_->fail("the line 'match' is missing: the text is cut off");
    parsed.names = names_;
    parsed.match_line =
        "line " + std::to_string(line_->number) + ": \"" + std::string(line_->text) + "\"";
    return parsed;
  }

 private:
  // Every name in a place where a size stands.
  void collect_variables() {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < lines_.size(); ++i) {
      line_ = &lines_[i];
      const std::string_view keyword = line_->words[0];
      std::vector<std::string> found;
      if (keyword == "out" || keyword == "in") found = variables_in_shape(line_->rest());
      if (const auto primitive = find_primitive(keyword)) {
        const PrimitiveInfo& info = primitive_info(*primitive);
        const auto place = static_cast<std::size_t>(1 + info.consumes);
        if (takes_size(info.argument) && line_->words.size() > place)
          found = guarded([&] { return Size::names_in(line_->words[place]); });
      }
      names.insert(names.end(), found.begin(), found.end());
    }
    variables_ = Variables::make(std::move(names));
  }

  // Runs `read` and adds the line to its errors.
  template <class Read>
  auto guarded(Read read) -> decltype(read()) {
    try {
      return read();
    } catch (const UserError& error) {
      throw UserError(std::string(error.what()) + "\n  in line " + std::to_string(line_->number));
    }
  }

  CoordinateId coordinate(std::string_view name) const {
    for (const auto& [known, id] : names_) {
      if (known == name) return id;
    }
    std::vector<std::string> known;
    for (const auto& [other, id] : names_) known.push_back(other);
    line_->fail("unknown coordinate '" + std::string(name) + "'\n  expected: one of " +
                join(known, ", "));
  }

  Shape shape() {
    return guarded([&] { return parse_shape(line_->rest(), *variables_); });
  }

  Size size(std::size_t word) {
    return guarded([&] { return Size::parse(line_->words[word], *variables_); });
  }

  int amount(std::string_view step, std::string_view word) {
    return guarded([&] {
      Cursor cursor(word, std::string(step));
      const std::int64_t amount = cursor.integer("as the amount");
      cursor.expect_end();
      if (amount > 1'000'000 || amount < -1'000'000)
        cursor.fail_at("the amount must be within a million", 1);
      return static_cast<int>(amount);
    });
  }

  WeightDim shared_dim(std::string_view word) const {
    const std::size_t colon = word.find(':');
    const std::string_view role = colon == std::string_view::npos ? "" : word.substr(colon + 1);
    WeightDim dim;
    if (role == "drop") {
      dim.role = WeightRole::kDrop;
    } else if (role == "join") {
      dim.role = WeightRole::kJoin;
    } else if (role != "keep") {
      line_->fail("expected coordinate:role with role keep, drop or join, got '" +
                  std::string(word) + "'");
    }
    dim.coordinate = coordinate(word.substr(0, colon));
    return dim;
  }

  void read_step(Graph& graph) {
    const auto& words = line_->words;
    const auto primitive = find_primitive(words[0]);
    if (!primitive) {
      std::string known;
      for (std::size_t p = 0; p < kPrimitiveCount; ++p)
        known += std::string(primitive_info(static_cast<Primitive>(p)).name) + ", ";
      line_->fail("unknown step '" + std::string(words[0]) + "'\n  expected: " + known +
                  "in, out or match");
    }
    const PrimitiveInfo& info = primitive_info(*primitive);
    const std::string form(info.form);
    const std::size_t arrow =
        static_cast<std::size_t>(std::find(words.begin(), words.end(), "->") - words.begin());
    const std::size_t results = arrow == words.size() ? 0 : words.size() - arrow - 1;
    if (results != static_cast<std::size_t>(info.produces)) {
      line_->fail("'" + std::string(info.name) + "' produces " + std::to_string(info.produces) +
                  " coordinates, got " + std::to_string(results) + "\n  expected: " + form);
    }
    Step step;
    step.primitive = *primitive;
    std::size_t next = 1;
    const auto more = [&](const char* what) {
      if (next >= arrow) line_->fail(std::string("expected ") + what + "\n  expected: " + form);
      return next++;
    };
    for (int j = 0; j < info.consumes; ++j)
      step.in[static_cast<std::size_t>(j)] = coordinate(words[more("a coordinate")]);
    switch (info.argument) {
      case Argument::kExtent:
      case Argument::kBlock:
      case Argument::kFactor: step.size = size(more("a size")); break;
      case Argument::kAmount: step.amount = amount(info.name, words[more("an amount")]); break;
      case Argument::kCausal:
        if (next < arrow && words[next] == "causal") {
          step.causal = true;
          ++next;
        }
        break;
      case Argument::kRoles:
        while (next < arrow) step.dims.push_back(shared_dim(words[next++]));
        break;
      case Argument::kNone: break;
    }
    if (next < arrow)
      line_->fail("unexpected '" + std::string(words[next]) + "'\n  expected: " + form);
    const Step& applied = guarded([&]() -> const Step& {
      try {
        return graph.apply(std::move(step));
      } catch (const UserError& error) {
        throw UserError(with_own_names(error.what(), graph, names_));
      }
    });
    for (std::size_t i = 0; i < results; ++i) {
      const std::string name(words[arrow + 1 + i]);
      for (const auto& [known, id] : names_) {
        if (known == name) line_->fail("coordinate '" + name + "' is made twice");
      }
      names_.emplace_back(name, applied.out[i]);
    }
  }

  std::vector<Line> lines_;
  const Line* line_ = nullptr;
  VariablesPtr variables_;
  CoordinateNames names_;
};

}  // namespace

std::string with_own_names(const std::string& message, const Graph& graph,
                           const CoordinateNames& names) {
  std::string result;
  std::size_t begin = 0;
  while (true) {
    const std::size_t open = message.find('\'', begin);
    if (open == std::string::npos) return result + message.substr(begin);
    std::size_t close = open + 1;
    while (close < message.size() && Cursor::is_name_rest(message[close])) ++close;
    result += message.substr(begin, open + 1 - begin);
    begin = open + 1;
    if (close == message.size() || message[close] != '\'') continue;
    std::string quoted = message.substr(begin, close - begin);
    for (const auto& [own, id] : names) {
      if (graph.name(id) != quoted) continue;
      quoted = own;
      break;
    }
    result += quoted + "'";
    begin = close + 1;
  }
}

std::string step_text(const Graph& graph, const Step& step) {
  const PrimitiveInfo& info = step.info();
  const Variables& variables = *graph.variables();
  std::string text(info.name);
  for (int j = 0; j < info.consumes; ++j)
    text += " " + graph.name(step.in[static_cast<std::size_t>(j)]);
  if (takes_size(info.argument)) text += " " + step.size.text(variables);
  if (info.argument == Argument::kAmount) text += " " + std::to_string(step.amount);
  if (step.causal) text += " causal";
  for (const WeightDim& dim : step.dims)
    text += " " + graph.name(dim.coordinate) + ":" + std::string(role_name(dim.role));
  if (info.produces > 0 && step.out[0] != kNoCoordinate) {
    text += " ->";
    for (int i = 0; i < info.produces; ++i)
      text += " " + graph.name(step.out[static_cast<std::size_t>(i)]);
  }
  return text;
}

std::string body_text(const Graph& graph, const Shape* input) {
  const Variables& variables = *graph.variables();
  std::string text = "out " + shape_text(graph.output(), variables) + "\n";
  if (input != nullptr) text += "in " + shape_text(*input, variables) + "\n";
  for (const Step& step : graph.steps()) text += step_text(graph, step) + "\n";
  return text;
}

ParsedText parse_text(std::string_view text, std::string_view header, bool complete) {
  return TextReader(text, header).read(complete);
}

}  // namespace syno
