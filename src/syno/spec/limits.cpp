#include "syno/spec/limits.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using L = Limits;

constexpr std::array kOptions = std::to_array<Option<Limits>>({
    {"max_depth", &L::max_depth, 1,
     "largest number of primitives in an operator; a contraction counts as one"},
    {"max_chain_length", &L::max_chain_length, 0,
     "largest number of views (split, merge, shift, unfold, stride) between an iterator and a "
     "coordinate"},
    {"max_weights", &L::max_weights, 1, "largest number of weight tensors"},
    {"max_reductions", &L::max_reductions, 0, "largest number of Reduce steps"},
    {"max_merges", &L::max_merges, 0, "largest number of Merge steps"},
    {"max_splits", &L::max_splits, 0, "largest number of Split steps"},
    {"max_shifts", &L::max_shifts, 0, "largest number of Shift steps"},
    {"max_strides", &L::max_strides, 0, "largest number of Stride steps"},
    {"max_unfolds", &L::max_unfolds, 0, "largest number of Unfold steps"},
    {"max_shift_amount", &L::max_shift_amount, 1, "largest amount of a Shift"},
    {"negative_shifts", &L::negative_shifts, 0, "whether the amount of a Shift may be negative"},
    {"max_repeat", &L::max_repeat, 1,
     "largest product of the extents of stand-alone Expands; 1 disables Expand"},
    {"even_windows", &L::even_windows, 0, "whether the window of an Unfold may be even"},
    {"element_wise_weights", &L::element_wise_weights, 0,
     "whether a weight may keep all its coordinates in the data, as in a depthwise convolution"},
    {"min_unfold_ratio", &L::min_unfold_ratio, 0,
     "smallest ratio of extent to window of an Unfold, under every binding"},
    {"max_window", &L::max_window, 1, "largest window of an Unfold"},
    {"max_reduction_ratio", &L::max_reduction_ratio, 0,
     "largest ratio of the product of all reductions to the number of input elements, without "
     "passed-through dimensions"},
    {"max_pooling", &L::max_pooling, 1,
     "largest product of the reductions that no weight holds (sums over data alone)"},
    {"max_size_variables", &L::max_size_variables, 1,
     "largest number of different variables in one size"},
    {"max_size_power", &L::max_size_power, 1, "largest sum of the absolute powers in one size"},
    {"min_weight_params", &L::min_weight_params, 1,
     "smallest number of parameters of a weight, under every binding"},
    {"max_dropped", &L::max_dropped, 1,
     "largest product of the outer indices that leave the data in one contraction"},
    {"max_joined", &L::max_joined, 1,
     "largest product of the reductions that leave the data in one contraction (indices that only "
     "weights share)"},
    {"min_macs", &L::min_macs, 0,
     "smallest number of MACs over all layers, weighted by multiplicity; 0: no limit"},
    {"max_macs", &L::max_macs, 0,
     "largest number of MACs over all layers, weighted by multiplicity; 0: no limit"},
    {"min_params", &L::min_params, 0,
     "smallest number of parameters over all layers, weighted by multiplicity; 0: no limit"},
    {"max_params", &L::max_params, 0,
     "largest number of parameters over all layers, weighted by multiplicity; 0: no limit"},
    {"min_fit", &L::min_fit, 0,
     "smallest fraction of the replaceable layers, by MACs, that an operator must fit; 1: every "
     "layer"},
});

[[noreturn]] void refuse(const Option<Limits>& option, double value, const char* more = "") {
  const std::string least = " of at least " + digits_text(option.minimum);
  throw Complaint("limit '" + std::string(option.name) + "' cannot be " + digits_text(value))
      .expected(option.type() == "flag"      ? "true or false"
                : option.type() == "integer" ? "an integer" + least
                                             : "a number" + least + more,
                digits_text(value))
      .error();
}

// 0 is no limit.
void check_window(const Limits& limits, const char* least, const char* most) {
  const double low = limit_option(least).get(limits);
  const double high = limit_option(most).get(limits);
  if (high == 0 || low <= high) return;
  const std::string low_text = std::string(least) + "=" + digits_text(low);
  const std::string high_text = std::string(most) + "=" + digits_text(high);
  throw Complaint(low_text + " is above " + high_text + ": no operator is within both limits")
      .expected(std::string(least) + " of at most " + digits_text(high), low_text)
      .hint(std::string("raise ") + most + ", lower " + least + ", or give " + most +
            "=0, which means no limit")
      .error();
}

}  // namespace

std::span<const Option<Limits>> limit_options() {
  return kOptions;
}

const Option<Limits>& limit_option(std::string_view name) {
  std::vector<std::string> names;
  for (const Option<Limits>& option : kOptions) {
    if (option.name == name) return option;
    names.emplace_back(option.name);
  }
  throw UserError("unknown limit '" + std::string(name) +
                  "'\n  known limits: " + join(names, ", "));
}

void set_limit(Limits& limits, std::string_view name, double value) {
  const Option<Limits>& option = limit_option(name);
  if (!is_whole(value) && (!std::isfinite(value) || option.type() != "real")) refuse(option, value);
  if (value < option.minimum || (option.type() == "flag" && value > 1)) refuse(option, value);
  if (name == "min_fit" && value > 1) refuse(option, value, " and at most 1");
  std::visit(
      [&](auto field) {
        using Field = std::remove_reference_t<decltype(limits.*field)>;
        limits.*field = static_cast<Field>(value);
      },
      option.member);
}

void check_limits(const Limits& limits) {
  // An operator has a weight, so it takes a step at least.
  for (const char* name : {"max_depth", "max_weights"}) {
    const Option<Limits>& option = limit_option(name);
    if (option.get(limits) < option.minimum) refuse(option, option.get(limits));
  }
  check_window(limits, "min_macs", "max_macs");
  check_window(limits, "min_params", "max_params");
  // An operator has a weight.
  check_window(limits, "min_weight_params", "max_params");
}

}  // namespace syno
