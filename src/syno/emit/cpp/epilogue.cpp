#include "syno/emit/cpp/epilogue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::cpp {
namespace {

// Names in an epilogue and the types of the runtime.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kActivations{{
    {"relu", "Relu"},
    {"relu6", "Relu6"},
    {"silu", "Silu"},
    {"gelu", "Gelu"},
    {"gelu_tanh", "GeluTanh"},
    {"hardswish", "Hardswish"},
    {"sigmoid", "Sigmoid"},
    {"tanh", "Tanh"},
    {"hardsigmoid", "Hardsigmoid"},
}};
constexpr std::array<std::string_view, 3> kTerms{"scale", "bias", "residual"};

std::string order_text(const std::vector<int>& order) {
  std::vector<std::string> parts;
  for (const int dimension : order) parts.push_back(std::to_string(dimension));
  return "[" + join(parts, ", ") + "]";
}

}  // namespace

Epilogue parse_epilogue(std::string_view text) {
  Epilogue epilogue;
  if (text.empty()) return epilogue;
  const auto complaint = [&](const std::string& expected, std::string_view part) {
    std::vector<std::string> names;
    for (const auto& [name, type] : kActivations) names.emplace_back(name);
    return Complaint("the epilogue '" + std::string(text) + "' is malformed")
        .expected(expected, "'" + std::string(part) + "'")
        .hint(
            "join by '+', in this order and each at most once: scale, bias, residual, and one of " +
            join(names, ", "))
        .error();
  };
  // The parts that may still come begin here.
  std::size_t next = 0;
  while (true) {
    const std::size_t end = std::min(text.find('+', next), text.size());
    const std::string_view part = text.substr(next, end - next);
    const auto* activation = std::find_if(kActivations.begin(), kActivations.end(),
                                          [&](const auto& known) { return known.first == part; });
    if (!epilogue.activation.empty()) throw complaint("nothing after the activation", part);
    if (activation != kActivations.end()) {
      epilogue.activation = activation->second;
    } else if (part == kTerms[0]) {
      if (!epilogue.empty()) throw complaint("'scale' once, as the first part", part);
      epilogue.scale = true;
    } else if (part == kTerms[1]) {
      if (epilogue.bias || epilogue.residual)
        throw complaint("'bias' once, before 'residual'", part);
      epilogue.bias = true;
    } else if (part == kTerms[2]) {
      if (epilogue.residual) throw complaint("'residual' once", part);
      epilogue.residual = true;
    } else {
      throw complaint("the name of a part", part);
    }
    if (end == text.size()) return epilogue;
    next = end + 1;
  }
}

void check_channel(int channel, std::size_t rank, bool batched) {
  const int first = batched ? 1 : 0;
  const int last = static_cast<int>(rank) - 1;
  if (channel >= first && channel <= last) return;
  const std::string expected =
      first > last ? "a result with a dimension besides the batch"
                   : "a dimension from " + std::to_string(first) + " to " + std::to_string(last);
  throw Complaint("the epilogue has a value for each channel, and the result has no such dimension")
      .where("channel")
      .expected(expected, std::to_string(channel))
      .hint("dimensions count from 0; 1 is the channel of [N, C, H, W], 2 that of [N, T, C]")
      .error();
}

void check_order(std::string_view what, const std::vector<int>& order, std::size_t rank,
                 bool batched) {
  std::vector<int> all;
  for (std::size_t d = 0; d < rank; ++d) all.push_back(static_cast<int>(d));
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != all) {
    throw Complaint("a memory order names each dimension once, the outermost first")
        .where(std::string(what))
        .expected("an order of " + order_text(all), order_text(order))
        .hint("omit it for row-major memory; [0, 2, 3, 1] is channels-last memory of [N, C, H, W]")
        .error();
  }
  if (batched && order[0] != 0) {
    throw Complaint("dimension 0 has any size, so it is the outermost one in memory")
        .where(std::string(what))
        .expected("an order that begins with 0", order_text(order))
        .error();
  }
}

}  // namespace syno::cpp
