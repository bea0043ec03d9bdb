#include "syno/emit/pytorch/lines.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using Dims = std::vector<int>;
using Calls = std::vector<TensorCall>;

template <class T>
std::string numbers(const std::vector<T>& values) {
  std::vector<std::string> parts;
  for (const T value : values) parts.push_back(std::to_string(value));
  return join(parts, ", ");
}

Dims concat(std::initializer_list<Dims> lists) {
  Dims all;
  for (const Dims& part : lists) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::int64_t place_of(const Dims& dims, int dim) {
  const auto place = std::find(dims.begin(), dims.end(), dim);
  ensure(place != dims.end(), "emit_pytorch: a tensor lacks a dimension");
  return place - dims.begin();
}

// From the order `have` to `want`.
void add_permute(Calls& calls, const Dims& have, const Dims& want) {
  if (have == want) return;
  std::vector<std::int64_t> order;
  for (const int dim : want) order.push_back(place_of(have, dim));
  calls.push_back({"permute", numbers(order)});
}

TensorCall unflatten(std::size_t place, const std::vector<std::string>& sizes) {
  return {"unflatten", std::to_string(place) + ", (" + join(sizes, ", ") + ")", place,
          sizes.size()};
}

TensorCall flatten(std::size_t place, std::size_t count) {
  return {"flatten", std::to_string(place) + ", " + std::to_string(place + count - 1), place,
          count};
}

// Makes one dimension of the `count` dimensions from `place` on.
void add_join(Calls& calls, std::size_t place, std::size_t count) {
  if (count == 0) calls.push_back({"unsqueeze", std::to_string(place)});
  if (count > 1) calls.push_back(flatten(place, count));
}

// The other way round.
void add_part(Calls& calls, std::size_t place, const std::vector<std::string>& sizes) {
  if (sizes.empty()) calls.push_back({"squeeze", std::to_string(place)});
  if (sizes.size() > 1) calls.push_back(unflatten(place, sizes));
}

Assignment plain_copy(const std::string& name) {
  return {name, name + ".clone(memory_format=torch.contiguous_format)", {}, ""};
}

// Zeros before and after dimension `axis` of `rank`; F.pad counts from the last one.
std::string padded(const std::string& value, std::size_t rank, std::int64_t axis,
                   std::int64_t before, std::int64_t after) {
  if (before == 0 && after == 0) return value;
  std::vector<std::int64_t> amounts(2 * (rank - static_cast<std::size_t>(axis)), 0);
  amounts[amounts.size() - 2] = before;
  amounts[amounts.size() - 1] = after;
  return "F.pad(" + value + ", (" + numbers(amounts) + "))";
}

// Whether `second` makes one dimension of those that `first` has just made of one.
bool takes_back(const TensorCall& first, const TensorCall& second) {
  return first.name == "unflatten" && second.name == "flatten" && first.place == second.place &&
         first.count == second.count;
}

}  // namespace

std::string Assignment::expression() const {
  std::string text = value;
  for (const TensorCall& call : calls) text += call.text();
  return text;
}

PytorchLines::PytorchLines(const Plan& plan) : plan_(plan), values_(plan.tensors.size(), "x") {
  for (const int weight : plan.weights)
    values_[static_cast<std::size_t>(weight)] = "self." + plan.tensor_name(weight);
  std::vector<bool> of_weight(plan.tensors.size(), false);
  for (const int weight : plan.weights) of_weight[static_cast<std::size_t>(weight)] = true;
  // The result of a stage on weights alone has the name of the first one as a local variable.
  for (const std::vector<Stage>* stages : {&plan.fold_stages, &plan.stages}) {
    for (const Stage& stage : *stages) {
      const auto input = static_cast<std::size_t>(stage.input);
      if (!of_weight[input]) continue;
      const std::string& name = values_[input];
      values_[static_cast<std::size_t>(stage.output)] =
          name.starts_with("self.") ? name.substr(5) : name;
      of_weight[static_cast<std::size_t>(stage.output)] = true;
    }
  }
}

std::vector<Assignment> PytorchLines::assignments() const {
  std::vector<Assignment> all;
  std::vector<Stage> stages = plan_.fold_stages;
  stages.insert(stages.end(), plan_.stages.begin(), plan_.stages.end());
  for (const Stage& stage : stages) {
    std::vector<Assignment> lines;
    add_stage(stage, lines);
    lines.back().comment = plan_.tensor_text(stage.output);
    for (Assignment& line : lines) {
      const auto last = std::find_if(all.rbegin(), all.rend(), [&](const Assignment& earlier) {
        return earlier.target == line.target;
      });
      const bool cancels = last != all.rend() && line.value == line.target &&
                           !last->calls.empty() && !line.calls.empty() &&
                           takes_back(last->calls.back(), line.calls.front());
      if (cancels) {
        last->calls.pop_back();
        line.calls.erase(line.calls.begin());
        last->comment.clear();
        if (line.calls.empty()) last->comment = line.comment;
        if (last->calls.empty() && last->value == last->target) all.erase(std::next(last).base());
      }
      if (!cancels || !line.calls.empty()) all.push_back(std::move(line));
    }
  }
  std::vector<Assignment> result = sizes();
  result.insert(result.end(), all.begin(), all.end());
  return result;
}

// Sizes known at run time only, where a line needs them to part a batch again.
std::vector<Assignment> PytorchLines::sizes() const {
  std::vector<Assignment> lines;
  const Dims& input = plan_.tensor(plan_.input).dims;
  for (std::size_t d = 0; d < input.size(); ++d) {
    const bool needed =
        std::any_of(plan_.stages.begin(), plan_.stages.end(), [&](const Stage& stage) {
          const Dims& batch = stage.convolution.batch;
          return batch.size() > 1 && std::find(batch.begin(), batch.end(), input[d]) != batch.end();
        });
    if (needed && plan_.dim(input[d]).role == DimRole::kFree)
      lines.push_back({size_of(input[d]), "x.shape[" + std::to_string(d) + "]", {}, ""});
  }
  return lines;
}

std::string PytorchLines::size_of(int dim) const {
  const PlanDim& named = plan_.dim(dim);
  return named.role == DimRole::kFree ? "size_" + named.name : std::to_string(named.extent);
}

void PytorchLines::add_shear(const Stage& stage, std::vector<Assignment>& lines) const {
  const std::string& name = value(stage.output);
  const std::size_t rank = plan_.tensor(stage.input).dims.size();
  lines.push_back(
      {name, padded(value(stage.input), rank, stage.axis, stage.before, stage.after), {}, ""});
  // Without its second dimension, each part has the first one here.
  const int axis = stage.axis > stage.second_axis ? stage.axis - 1 : stage.axis;
  const std::string size =
      size_of(plan_.tensor(stage.output).dims[static_cast<std::size_t>(stage.axis)]);
  const std::string second = std::to_string(stage.second_axis);
  lines.push_back({name,
                   "torch.stack([t.narrow(" + std::to_string(axis) + ", j, " + size +
                       ") for j, t in enumerate(" + name + ".unbind(" + second + "))], " + second +
                       ")",
                   {},
                   ""});
}

std::string PytorchLines::einsum(const Stage& stage) const {
  std::map<int, char> letters;
  bool single = true;
  const auto spell = [&](const Dims& dims) {
    std::string text;
    for (const int dim : dims) {
      const std::string& name = plan_.dim(dim).name;
      if (name.size() > 1) single = false;
      const auto next =
          static_cast<char>(letters.size() < 26 ? 'a' + letters.size() : 'A' + letters.size() - 26);
      const char letter = letters.try_emplace(dim, next).first->second;
      text += single ? name[0] : letter;
    }
    return text;
  };
  const auto equation = [&] {
    const std::string data = spell(plan_.tensor(stage.input).dims);
    const std::string weight = spell(plan_.tensor(stage.weight).dims);
    return data + "," + weight + "->" + spell(plan_.tensor(stage.output).dims);
  };
  std::string text = equation();
  // Names of several letters: all dimensions of this stage get letters of their own.
  if (!single) text = equation();
  ensure(letters.size() <= 52, "emit_pytorch: einsum has 52 letters only");
  return "torch.einsum(\"" + text + "\", " + value(stage.input) + ", " + value(stage.weight) + ")";
}

bool PytorchLines::made_by_convolution(int tensor) const {
  return std::any_of(plan_.stages.begin(), plan_.stages.end(), [&](const Stage& stage) {
    return stage.output == tensor && stage.kind == StageKind::kConvolution;
  });
}

void PytorchLines::add_convolution(const Stage& stage, std::vector<Assignment>& lines) const {
  const ConvolutionDims& c = stage.convolution;
  Dims places;
  Dims windows;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  bool even = true;
  for (const SpatialDim& spatial : c.spatial) {
    places.push_back(spatial.padded);
    if (spatial.window >= 0) windows.push_back(spatial.window);
    padding.push_back(spatial.before);
    strides.push_back(spatial.stride);
    dilations.push_back(spatial.dilation);
    even = even && spatial.before == spatial.after;
  }

  // Next to an extent of 1 strides say nothing, and there torch has computed wrong gradients without
  // oneDNN: a copy has plain strides, while `contiguous` leaves such a tensor as it is.
  const auto is_unit = [&](int dim) { return plan_.dim(dim).extent == 1; };

  // Data as [batch, channels, spatial...].
  Assignment data{"x", value(stage.input), {}, ""};
  add_permute(data.calls, plan_.tensor(stage.input).dims,
              concat({c.batch, c.groups, c.in_channels, places}));
  add_join(data.calls, c.batch.size(), c.groups.size() + c.in_channels.size());
  add_join(data.calls, 0, c.batch.size());
  if (!data.calls.empty()) lines.push_back(std::move(data));
  const Dims channels = concat({c.groups, c.in_channels});
  const Dims read = concat({channels, places});
  // The result of a convolution as it is has no such strides, as long as all that it counts as one is longer than 1.
  const bool as_made =
      made_by_convolution(stage.input) &&
      plan_.tensor(stage.input).dims == concat({c.batch, c.groups, c.in_channels, places}) &&
      std::none_of(places.begin(), places.end(), is_unit) &&
      !std::all_of(channels.begin(), channels.end(), is_unit);
  if (!as_made && std::any_of(read.begin(), read.end(), is_unit)) lines.push_back(plain_copy("x"));
  if (!even) {
    // F.pad counts from the last dimension.
    std::vector<std::int64_t> amounts;
    for (std::size_t i = c.spatial.size(); i-- > 0;) {
      amounts.push_back(c.spatial[i].before);
      amounts.push_back(c.spatial[i].after);
    }
    if (amounts.size() == 4 && amounts[2] == 0 && amounts[3] == 0) amounts.resize(2);
    lines.push_back({"x", "F.pad(x, (" + numbers(amounts) + "))", {}, ""});
  }

  // The weight as [groups and filters, channels of a group, window...].
  const std::string& held = value(stage.weight);
  Assignment weight{held.starts_with("self.") ? held.substr(5) : held, held, {}, ""};
  const std::size_t filters = c.groups.size() + c.out_channels.size();
  add_permute(weight.calls, plan_.tensor(stage.weight).dims,
              concat({c.groups, c.out_channels, c.in_channels, windows}));
  add_join(weight.calls, filters, c.in_channels.size());
  add_join(weight.calls, 0, filters);
  for (std::size_t i = 0; i < c.spatial.size(); ++i) {
    if (c.spatial[i].window < 0) weight.calls.push_back({"unsqueeze", std::to_string(2 + i)});
  }

  // Without oneDNN, torch refuses gradients of a weight whose elements are not in order.
  const bool in_order = held.starts_with("self.") &&
                        std::none_of(weight.calls.begin(), weight.calls.end(),
                                     [](const TensorCall& call) { return call.name == "permute"; });
  if (!in_order) weight.calls.push_back({"contiguous", ""});

  const std::string filter = weight.calls.empty() ? held : weight.target;
  if (!weight.calls.empty()) lines.push_back(std::move(weight));
  Dims had = plan_.tensor(stage.weight).dims;
  Dims used = concat({c.groups, c.out_channels, c.in_channels, windows});
  std::erase_if(had, is_unit);
  std::erase_if(used, is_unit);
  if (!in_order && had == used) lines.push_back(plain_copy(filter));

  std::string arguments = "x, " + filter;
  const auto add_argument = [&](const char* name, const std::vector<std::int64_t>& values,
                                std::int64_t usual) {
    if (std::all_of(values.begin(), values.end(), [&](auto v) { return v == usual; })) return;
    arguments += std::string(", ") + name + "=" +
                 (values.size() == 1 ? numbers(values) : "(" + numbers(values) + ")");
  };
  if (even) add_argument("padding", padding, 0);
  add_argument("stride", strides, 1);
  add_argument("dilation", dilations, 1);
  std::int64_t groups = 1;
  for (const int dim : c.groups) groups *= plan_.dim(dim).extent;
  if (groups > 1) arguments += ", groups=" + std::to_string(groups);

  std::vector<std::string> channel_sizes;
  for (const int dim : concat({c.groups, c.out_channels})) channel_sizes.push_back(size_of(dim));
  std::vector<std::string> batch_sizes;
  for (const int dim : c.batch) batch_sizes.push_back(size_of(dim));
  Assignment result{
      "x", "F.conv" + std::to_string(c.spatial.size()) + "d(" + arguments + ")", {}, ""};
  add_part(result.calls, 1, channel_sizes);
  add_part(result.calls, 0, batch_sizes);
  lines.push_back(std::move(result));
}

void PytorchLines::add_stage(const Stage& stage, std::vector<Assignment>& lines) const {
  Assignment line{value(stage.output), value(stage.input), {}, ""};
  const Dims& dims = plan_.tensor(stage.input).dims;
  const std::string axis = std::to_string(stage.axis);
  const auto out_size = [&](int place) {
    return size_of(plan_.tensor(stage.output).dims[static_cast<std::size_t>(place)]);
  };
  switch (stage.kind) {
    case StageKind::kConvolution: add_convolution(stage, lines); return;
    case StageKind::kShear: add_shear(stage, lines); return;
    case StageKind::kContraction: line.value = einsum(stage); break;
    case StageKind::kPermute: line.calls = {{"permute", numbers(stage.order)}}; break;
    case StageKind::kSplit:
      line.calls = {unflatten(static_cast<std::size_t>(stage.axis),
                              {out_size(stage.axis), out_size(stage.axis + 1)})};
      break;
    case StageKind::kMerge: line.calls = {flatten(static_cast<std::size_t>(stage.axis), 2)}; break;
    case StageKind::kRoll:
      line.calls = {{"roll", std::to_string(-stage.amount) + ", " + axis}};
      break;
    case StageKind::kSlice: {
      std::vector<std::string> places(static_cast<std::size_t>(stage.axis), ":");
      places.push_back("::" + std::to_string(stage.amount));
      line.value += "[" + join(places, ", ") + "]";
      break;
    }
    case StageKind::kExpand: {
      std::vector<std::string> sizes(dims.size() + 1, "-1");
      sizes[static_cast<std::size_t>(stage.axis)] = out_size(stage.axis);
      line.calls = {{"unsqueeze", axis}, {"expand", join(sizes, ", ")}};
      break;
    }
    case StageKind::kWindow:
      line.value = padded(line.value, dims.size(), stage.axis, stage.before, stage.after);
      line.calls = {{"unfold", axis + ", " + std::to_string(stage.amount) + ", 1"}};
      break;
    case StageKind::kDiagonal: {
      // diag_embed makes the last dimension into two.
      const int last = static_cast<int>(dims.size()) - 1;
      if (stage.axis != last) line.value += ".movedim(" + axis + ", -1)";
      line.value = "torch.diag_embed(" + line.value + ")";
      if (stage.axis != last) line.calls = {{"movedim", "-2, " + axis}};
      break;
    }
    case StageKind::kScale: line.value += " * " + std::to_string(stage.amount); break;
    case StageKind::kSum: {
      std::vector<std::int64_t> places;
      for (const int dim : stage.summed) places.push_back(place_of(dims, dim));
      std::sort(places.begin(), places.end());
      const bool adjacent = places.back() - places.front() + 1 == std::ssize(places);
      if (adjacent) {
        line.calls = {{"sum", places.size() == 1 ? numbers(places) : "(" + numbers(places) + ")"}};
        break;
      }
      // Dimensions that lie apart, as in pooling: one after the other, from the outermost, takes torch a third to a
      // seventh of the time; less than avg_pool2d, whose divisor_override not every exporter knows.
      for (std::size_t i = 0; i < places.size(); ++i)
        line.calls.push_back({"sum", std::to_string(places[i] - static_cast<std::int64_t>(i))});
      break;
    }
  }
  lines.push_back(std::move(line));
}

}  // namespace syno
