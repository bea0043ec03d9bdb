// The smallest specification on which a check still fails, found by taking things away. For messages of random tests.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syno/space/random_specification_test.h"
#include "syno/support/error.h"

namespace syno::samples {

/// What is wrong with a specification, or "". A UserError means that it is none.
using Check = std::function<std::string(const SpecificationSource&)>;

class Shrinker {
 public:
  explicit Shrinker(Check check) : check_(std::move(check)) {}

  /// The description of the smallest source that fails, and how it fails. `source` must fail.
  std::string explain(SpecificationSource source) {
    std::string why = check_(source);
    // What is simpler has a shorter description, so this ends.
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (SpecificationSource& candidate : simpler(source)) {
        if (!is_simpler(candidate, source)) continue;
        const std::string found = failure(candidate);
        if (found.empty()) continue;
        source = std::move(candidate);
        why = found;
        smaller = true;
        break;
      }
    }
    return describe(source) + "\n" + why;
  }

 private:
  std::string failure(const SpecificationSource& source) const {
    try {
      return check_(source);
    } catch (const UserError&) {
      return "";
    }
  }

  static bool is_simpler(const SpecificationSource& a, const SpecificationSource& b) {
    const std::string text_a = describe(a);
    const std::string text_b = describe(b);
    return text_a.size() != text_b.size() ? text_a.size() < text_b.size() : text_a < text_b;
  }

  // The dimensions of "[H, C: unordered]".
  static std::vector<std::string> dimensions(const std::string& shape) {
    std::vector<std::string> dims;
    std::string dim;
    for (const char c : shape.substr(1, shape.size() - 2)) {
      if (c == ',') {
        dims.push_back(std::exchange(dim, ""));
      } else if (c != ' ' || !dim.empty()) {
        dim += c;
      }
    }
    if (!dim.empty()) dims.push_back(dim);
    return dims;
  }
  static std::string shape(const std::vector<std::string>& dims) {
    std::string text;
    for (const std::string& dim : dims) text += (text.empty() ? "" : ", ") + dim;
    return "[" + text + "]";
  }

  // One thing less each.
  static std::vector<SpecificationSource> simpler(const SpecificationSource& source) {
    std::vector<SpecificationSource> list;
    const auto with = [&](const auto& change) {
      SpecificationSource other = source;
      change(other);
      list.push_back(std::move(other));
    };
    for (std::size_t b = 0; b < source.bindings.size(); ++b) {
      with([&](auto& s) { s.bindings.erase(s.bindings.begin() + static_cast<std::ptrdiff_t>(b)); });
    }
    for (auto part : {&SpecificationSource::output, &SpecificationSource::input}) {
      const std::vector<std::string> dims = dimensions(source.*part);
      for (std::size_t d = 0; d < dims.size(); ++d) {
        std::vector<std::string> fewer = dims;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(d));
        with([&](auto& s) { s.*part = shape(fewer); });
        // Without its kind, without its last factor.
        for (const char fingerprint : {':', '*'}) {
          const std::size_t place = dims[d].rfind(fingerprint);
          if (place == std::string::npos) continue;
          std::vector<std::string> plainer = dims;
          plainer[d] = dims[d].substr(0, place);
          with([&](auto& s) { s.*part = shape(plainer); });
        }
      }
    }
    for (auto part : {&SpecificationSource::primary, &SpecificationSource::coefficient}) {
      for (std::size_t v = 0; v < (source.*part).size(); ++v) {
        const std::string& text = (source.*part)[v];
        const std::string name = text.substr(0, text.find_first_of("=: "));
        with([&](auto& s) {
          (s.*part).erase((s.*part).begin() + static_cast<std::ptrdiff_t>(v));
          for (Binding& binding : s.bindings) {
            auto values = binding.values();
            values.erase(name);
            binding = Binding(values);
          }
        });
        const char budget = text.back();
        if (budget > '0' && budget <= '9')
          with([&](auto& s) { (s.*part)[v].back() = static_cast<char>(budget - 1); });
      }
    }
    if (!source.passed_through.empty()) with([](auto& s) { s.passed_through.clear(); });
    for (const Option<Limits>& option : limit_options()) {
      const double value = option.get(source.limits);
      for (const double other : {option.get(Limits()), 0.0, 1.0, value - 1}) {
        if (other == value || other < option.minimum) continue;
        with([&](auto& s) { set_limit(s.limits, option.name, other); });
      }
    }
    return list;
  }

  Check check_;
};

}  // namespace syno::samples
