// Rules as pairs of texts: the form that is rejected, and the one that is kept.
//
//     rejected    split b c -> t        kept    split a b -> u
//                 split a t                     split u c
//
// The lines are those of an operator's text (graph/operator.h), but names stand for any coordinates, sizes and amounts.
// The last rejected line is the step that the rule is asked about. Those before it are steps of the graph: what each makes
// is taken by a line after it, and no weight holds it. The kept graph has all other steps, and then the kept lines. A
// window is causal where that of the same index was.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/rules/rule.h"
#include "syno/support/inline_vector.h"

namespace syno {

struct Forms {
  std::string_view rejected;
  std::string_view kept;
};

class ParsedForms {
 public:
  static constexpr std::size_t kMostNames = 8;
  static constexpr std::size_t kMostLines = 4;

  /// Throws UserError for a text that is no such form.
  explicit ParsedForms(const Forms& forms);

  /// The rejected form in graph and step.
  struct Place {
    std::array<CoordinateId, kMostNames> coordinates;
    /// By line.
    std::array<const Step*, kMostLines> steps{};
  };
  bool find(const RuleContext& context, Place& place) const;
  /// The graph that is kept; nothing where the form is not there.
  std::optional<Graph> kept(const RuleContext& context) const;

 private:
  using Number = int;  // of a name or a line; -1 for none

  struct Line {
    Primitive primitive{};
    std::array<Number, 2> in{-1, -1};
    std::array<Number, 2> out{-1, -1};
    /// Of a rejected line, the name of its argument; of a kept one, the lines with the factors of its argument.
    InlineVector<Number, 2> argument;
  };
  class Reader;

  std::vector<Line> rejected_;
  std::vector<Line> kept_;
};

/// Each pair of texts is parsed once.
template <const Forms& forms>
const ParsedForms& parsed_forms() {
  static const ParsedForms kParsed(forms);
  return kParsed;
}

/// Rule::matches and Rule::rewrite of a rule that is its forms.
template <const Forms& forms>
bool form_matches(const RuleContext& context) {
  ParsedForms::Place place;
  return parsed_forms<forms>().find(context, place);
}
template <const Forms& forms>
std::optional<Graph> form_rewrite(const RuleContext& context) {
  return parsed_forms<forms>().kept(context);
}

/// The step of the graph that the first rejected line is; null where the form is not there.
template <const Forms& forms>
const Step* form_below(const RuleContext& context) {
  ParsedForms::Place place;
  return parsed_forms<forms>().find(context, place) ? place.steps[0] : nullptr;
}

}  // namespace syno
