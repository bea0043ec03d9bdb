#include "syno/spec/symmetry.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::size_t kMostImages = std::size_t{1} << 10;

std::string_view kind_name(Symmetry::Kind kind) {
  switch (kind) {
    case Symmetry::Kind::kMirror: return "mirror";
    case Symmetry::Kind::kExchange: return "exchange";
    case Symmetry::Kind::kTranspose: return "transpose";
  }
  return "";
}

std::uint64_t bit(int place) {
  return std::uint64_t{1} << place;
}

// Exchanges what stands at places `a` and `b` of an image; `first` is the bit of place 0.
void exchange(std::vector<int>& places, std::uint64_t& mirrored, int first, int a, int b) {
  for (int& place : places) place = place == a ? b : place == b ? a : place;
  const bool was_a = (mirrored & bit(first + a)) != 0;
  const bool was_b = (mirrored & bit(first + b)) != 0;
  mirrored &= ~(bit(first + a) | bit(first + b));
  if (was_a) mirrored |= bit(first + b);
  if (was_b) mirrored |= bit(first + a);
}

}  // namespace

Symmetry parse_symmetry(std::string_view text) {
  Cursor cursor(text, "symmetry");
  const std::size_t column = cursor.column();
  const std::string name = cursor.name("of a symmetry: mirror, exchange or transpose");
  Symmetry found;
  if (name == "mirror") {
    found.kind = Symmetry::Kind::kMirror;
  } else if (name == "exchange") {
    found.kind = Symmetry::Kind::kExchange;
  } else if (name == "transpose") {
    found.kind = Symmetry::Kind::kTranspose;
  } else {
    cursor.fail_at("there is no symmetry '" + name + "': expected mirror, exchange or transpose",
                   column);
  }
  const auto dimension = [&] {
    const std::size_t at = cursor.column();
    const std::int64_t number = cursor.integer("as a dimension of '" + name + "'");
    if (number < 0 || number > 31) cursor.fail_at("a dimension is a number from 0", at);
    return static_cast<int>(number);
  };
  found.a = dimension();
  if (found.kind != Symmetry::Kind::kMirror) {
    found.b = dimension();
    if (found.a > found.b) std::swap(found.a, found.b);
  }
  cursor.expect_end();
  return found;
}

std::string symmetry_text(const Symmetry& symmetry) {
  std::string text(kind_name(symmetry.kind));
  text += " " + std::to_string(symmetry.a);
  if (symmetry.kind != Symmetry::Kind::kMirror) text += " " + std::to_string(symmetry.b);
  return text;
}

void check_symmetries(const std::vector<Symmetry>& symmetries, const Shape& input,
                      const Shape& output, const Variables& variables) {
  const std::string shapes = shape_text(input, variables) + " -> " + shape_text(output, variables);
  for (const Symmetry& symmetry : symmetries) {
    const std::string title = "symmetry '" + symmetry_text(symmetry) + "'";
    const bool is_pair = symmetry.kind != Symmetry::Kind::kMirror;
    if (is_pair && symmetry.a == symmetry.b) {
      throw Complaint(title + " names one dimension twice")
          .expected("two different dimensions", symmetry_text(symmetry))
          .error();
    }
    for (const Shape* shape : {&input, &output}) {
      const auto dimension = [&](int d) -> const Dimension& {
        if (static_cast<std::size_t>(d) >= shape->size()) {
          throw Complaint(title + " names a dimension that does not exist")
              .where(shapes)
              .expected("a dimension of input and output, from 0", std::to_string(d))
              .error();
        }
        const Dimension& found = (*shape)[static_cast<std::size_t>(d)];
        if (!found.causal) return found;
        throw Complaint(title + " names a causal dimension, which has a direction")
            .where(shapes)
            .hint("leave out the symmetry")
            .error();
      };
      const Dimension& a = dimension(symmetry.a);
      if (!is_pair || a == dimension(symmetry.b)) continue;
      throw Complaint(title + " exchanges dimensions of different sizes")
          .where(shapes)
          .expected("dimensions of one size",
                    a.size.text(variables) + " and " + dimension(symmetry.b).size.text(variables))
          .hint("write one variable for both, as in [N, C_in: unordered, H, H]")
          .error();
    }
  }
}

std::vector<Image> symmetry_group(const std::vector<Symmetry>& symmetries, std::size_t outputs,
                                  std::size_t inputs) {
  ensure(outputs + inputs < 64, "symmetry_group: too many dimensions");
  const int first_input = static_cast<int>(outputs);
  Image identity;
  identity.output.resize(outputs);
  identity.input.resize(inputs);
  std::iota(identity.output.begin(), identity.output.end(), 0);
  std::iota(identity.input.begin(), identity.input.end(), 0);
  std::vector<Image> group{identity};
  std::set<Image> known{identity};
  for (std::size_t i = 0; i < group.size(); ++i) {
    for (const Symmetry& symmetry : symmetries) {
      Image image = group[i];
      const auto [kind, a, b] = symmetry;
      if (kind == Symmetry::Kind::kMirror) {
        image.mirrored ^= bit(a) | bit(first_input + a);
      } else {
        exchange(image.output, image.mirrored, 0, a, b);
        if (kind == Symmetry::Kind::kExchange)
          exchange(image.input, image.mirrored, first_input, a, b);
      }
      if (!known.insert(image).second) continue;
      group.push_back(std::move(image));
      if (group.size() <= kMostImages) continue;
      throw Complaint("the symmetries generate too many images of an operator")
          .expected("at most " + std::to_string(kMostImages), "more")
          .hint("name fewer symmetries")
          .error();
    }
  }
  return group;
}

}  // namespace syno
