// Small specifications whose whole raw space is enumerated in a moment, one for each thing a specification can ask for, and
// larger ones for tests that walk at random.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "syno/space/enumerate.h"
#include "syno/spec/presets.h"
#include "syno/support/error.h"

namespace syno::samples {

struct SmallSpace {
  std::string name;
  /// What it is there for.
  std::string doc;
  SpecificationSource source;
};

inline SmallSpace make(std::string name, std::string doc, std::string input, std::string output,
                       std::vector<std::string> primary, std::vector<std::string> coefficient,
                       std::vector<const char*> bindings, std::int64_t depth) {
  SmallSpace space{std::move(name), std::move(doc), {}};
  space.source.input = std::move(input);
  space.source.output = std::move(output);
  space.source.primary = std::move(primary);
  space.source.coefficient = std::move(coefficient);
  for (const char* text : bindings) space.source.bindings.push_back(Binding::parse(text));
  space.source.limits.max_depth = depth;
  return space;
}

/// Each has sizes so small that operators can be compared term by term, and so large that none is 1.
inline std::vector<SmallSpace> small_spaces() {
  std::vector<SmallSpace> list;
  SmallSpace space = make("linear", "a batch and two ordered dimensions", "[N, I]", "[N, O]",
                          {"N: 0", "I: 2", "O: 2"}, {"s=2: 1"}, {"I=4, O=6"}, 5);
  space.source.passed_through = {{0, 0}};
  space.source.limits.max_merges = 2;
  list.push_back(space);

  space = make("conv1d", "channels and a map", "[N, I: unordered, H]", "[N, O: unordered, H]",
               {"N: 0", "I: 1", "O: 1", "H: 0"}, {"k=3: 1", "s=2: 1"}, {"I=4, O=8, H=8"}, 5);
  space.source.passed_through = {{0, 0}};
  list.push_back(space);

  space = make("square", "two dimensions that can trade sizes, element-wise weights", "[H, W]",
               "[H, W]", {"H: 1", "W: 1"}, {"k=3: 1"}, {"H=9, W=12"}, 5);
  space.source.limits.element_wise_weights = true;
  list.push_back(space);

  space = make("channels", "mixing of unordered channels in groups", "[C_in: unordered]",
               "[C_out: unordered]", {"C_in: 2", "C_out: 2"}, {"g=2: 2"}, {"C_in=8, C_out=12"}, 6);
  list.push_back(space);

  space = make("strided", "a Stride under a window: strided and dilated windows", "[C, s*H]",
               "[C, H]", {"C: 1", "H: 1"}, {"k=3: 1", "s=2: 1"}, {"C=4, H=8"}, 5);
  space.source.limits.max_strides = 1;
  list.push_back(space);

  space = make("sequence", "a causal dimension, rotations both ways", "[T: causal, C: unordered]",
               "[T: causal, C: unordered]", {"T: 1", "C: 2"}, {"k=3: 2"}, {"T=9, C=6"}, 5);
  space.source.limits.negative_shifts = true;
  space.source.limits.max_shifts = 1;
  list.push_back(space);

  space = make("repeat", "an output larger than the input: repeated and grouped", "[C]", "[t, C]",
               {"C: 2"}, {"t=2: 2"}, {"C=8"}, 5);
  space.source.limits.max_repeat = 2;
  list.push_back(space);

  space = make("product", "an input dimension that is a product", "[H*W]", "[H, W]",
               {"H: 1", "W: 1"}, {"k=3: 1"}, {"H=9, W=7"}, 5);
  list.push_back(space);

  space = make("fraction", "an input dimension that is a fraction, layers of which one may be left",
               "[s^-1*C]", "[C]", {"C: 2"}, {"s=2: 2"}, {"C=8", "C=12"}, 6);
  space.source.limits.min_fit = 0.5;
  space.source.limits.max_merges = 2;
  list.push_back(space);

  space = make("even", "windows of even size, rotations by two", "[H]", "[H]", {"H: 1"}, {"k=2: 2"},
               {"H=8"}, 5);
  space.source.limits.even_windows = true;
  space.source.limits.max_shift_amount = 2;
  list.push_back(space);

  space = make("weights", "three weights, element-wise ones too", "[H, I]", "[H, O]",
               {"H: 2", "I: 2", "O: 2"}, {}, {"H=2, I=3, O=4"}, 5);
  space.source.limits.element_wise_weights = true;
  space.source.limits.max_weights = 3;
  list.push_back(space);
  return list;
}

inline SmallSpace space_of(const std::vector<SmallSpace>& list, const std::string& name) {
  for (const SmallSpace& space : list) {
    if (space.name == name) return space;
  }
  throw InternalError("no space has this name");
}
inline SmallSpace small_space(const std::string& name) {
  return space_of(small_spaces(), name);
}

/// The small ones and those of the paper, with variants that turn on what no preset has.
inline std::vector<SmallSpace> varied_spaces() {
  std::vector<SmallSpace> list = small_spaces();
  for (const std::string& name : preset_names()) {
    SmallSpace space{name, "", preset(name)};
    if (name == "paper/resnext29_2x64d") {
      space.source.bindings = {Binding::parse("C_in=64, C_out=128, H=16"),
                               Binding::parse("C_in=128, C_out=128, H=8")};
      space.source.multiplicities = {};
    }
    if (name == "paper/gcn") space.source.bindings = {Binding::parse("N=4, H_in=30, H_out=60")};
    if (name == "paper/readme") space.source.bindings = {Binding::parse("H=36, W=24")};
    list.push_back(space);
  }
  const auto variant = [&](const char* of, const char* name, auto change) {
    SmallSpace changed = space_of(list, of);
    changed.name = name;
    change(changed.source);
    list.push_back(changed);
  };
  variant("paper/resnet18", "resnet18, everything", [](SpecificationSource& source) {
    source.limits.element_wise_weights = true;
    source.limits.max_weights = 3;
    source.limits.max_merges = 3;
    source.limits.max_strides = 2;
    source.limits.even_windows = true;
    source.limits.max_shift_amount = 3;
    source.limits.negative_shifts = true;
    source.limits.max_repeat = 7;
    source.limits.min_fit = 0.3;
    source.limits.min_weight_params = 1;
    source.primary[3] = "H: 2";
  });
  variant("paper/resnet18", "resnet18, causal maps", [](SpecificationSource& source) {
    source.input = "[N, C_in: unordered, H: causal, H]";
    source.output = "[N, C_out: unordered, H: causal, H]";
    source.limits.max_strides = 1;
    source.limits.max_chain_length = 3;
    source.primary[3] = "H: 1";
  });
  variant("paper/resnet18", "resnet18, tight", [](SpecificationSource& source) {
    source.limits.max_pooling = 3;
    source.limits.max_joined = 4;
    source.limits.max_dropped = 300;
    source.limits.max_window = 5;
    source.limits.max_size_power = 3;
    source.limits.max_size_variables = 2;
    source.limits.min_fit = 0.6;
  });
  variant("paper/resnet18", "resnet18, products", [](SpecificationSource& source) {
    source.input = "[N, g^-1*C_in: unordered, H*H]";
    source.output = "[N, s*C_out, s^-1*H, H]";
    source.primary[3] = "H: 1";
    source.limits.max_merges = 2;
    source.bindings = {Binding::parse("C_in=64, C_out=64, H=8"),
                       Binding::parse("C_in=96, C_out=64, H=12")};
    source.multiplicities.clear();
    source.layer_macs.clear();
    source.limits.max_strides = 1;
    source.limits.min_fit = 0.1;
  });
  return list;
}

inline EnumerateOptions options(RuleSet rules, BoundMode bound, std::int64_t depth = 0) {
  EnumerateOptions made;
  made.rules = std::move(rules);
  made.bound = bound;
  made.max_depth = depth;
  made.max_nodes = 20'000'000;
  return made;
}

inline std::set<Hash128> structures(const Specification& spec, const Space& space) {
  std::set<Hash128> all;
  for (std::size_t i = 0; i < space.operators.size(); ++i)
    all.insert(space.op(spec, i).structure());
  return all;
}

/// Windows over two dimensions: many steps that can be taken in any order, and equal reductions.
inline SpecificationSource windows_over_two(std::int64_t depth) {
  return make("windows", "", "[I: unordered, H, W]", "[O: unordered, H, W]",
              {"I: 2", "O: 2", "H: 0", "W: 0"}, {"k=3: 3"}, {"I=8, O=8, H=16, W=16"}, depth)
      .source;
}

/// The small spaces, and some whose operators are deeper.
inline std::vector<SmallSpace> small_and_deep_spaces() {
  std::vector<SmallSpace> list = small_spaces();
  for (const char* name : {"paper/resnet18", "paper/vit", "paper/gcn", "paper/readme"})
    list.push_back(space_of(varied_spaces(), name));
  return list;
}

/// Calls visit(op) for about `most` structures of a space, evenly from all that a short search without rules lists.
template <class Visit>
void for_some_operators(const Specification& spec, std::size_t most, const Visit& visit) {
  EnumerateOptions made = options(RuleSet(), BoundMode::kFull);
  made.keys = false;
  made.max_nodes = 1500;
  const Space space = enumerate_space(spec, made);
  const std::size_t step = 1 + space.operators.size() / most;
  for (std::size_t i = 0; i < space.operators.size(); i += step) visit(space.op(spec, i));
}

}  // namespace syno::samples
