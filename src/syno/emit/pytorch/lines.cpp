#include "syno/emit/pytorch/lines.h"

#include <algorithm>
#include <map>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using Dims = std::vector<int>;

std::string list(const std::vector<std::string>& parts) {
  return join(parts, ", ");
}

template <class T>
std::string numbers(const std::vector<T>& values) {
  std::vector<std::string> parts;
  for (const T value : values) parts.push_back(std::to_string(value));
  return list(parts);
}

std::string call(const char* name, const std::string& arguments) {
  return std::string(".") + name + "(" + arguments + ")";
}

Dims concat(std::initializer_list<Dims> lists) {
  Dims all;
  for (const Dims& part : lists) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// ".permute(...)" from the order `have` to `want`, or nothing.
std::string permuted(const Dims& have, const Dims& want) {
  if (have == want) return "";
  std::vector<std::ptrdiff_t> order;
  for (const int dim : want) {
    const auto place = std::find(have.begin(), have.end(), dim);
    ensure(place != have.end(), "emit_pytorch: a convolution lacks a dimension");
    order.push_back(place - have.begin());
  }
  return call("permute", numbers(order));
}

// Makes one dimension of the `count` dimensions from `first` on.
std::string joined(std::size_t first, std::size_t count) {
  if (count == 1) return "";
  if (count == 0) return call("unsqueeze", std::to_string(first));
  return call("flatten", std::to_string(first) + ", " + std::to_string(first + count - 1));
}

// The other way round.
std::string parted(std::size_t place, const std::vector<std::string>& sizes) {
  if (sizes.size() == 1) return "";
  if (sizes.empty()) return call("squeeze", std::to_string(place));
  return call("unflatten", std::to_string(place) + ", (" + list(sizes) + ")");
}

}  // namespace

PytorchLines::PytorchLines(const Plan& plan) : plan_(plan), values_(plan.tensors.size(), "x") {
  for (const int weight : plan.weights)
    values_[static_cast<std::size_t>(weight)] = "self." + plan.tensor_name(weight);
  std::vector<bool> of_weight(plan.tensors.size(), false);
  for (const int weight : plan.weights) of_weight[static_cast<std::size_t>(weight)] = true;
  for (const Stage& stage : plan.stages) {
    // A stage on a weight alone is a view of it; its result keeps the weight's name as a local variable.
    const auto input = static_cast<std::size_t>(stage.input);
    if (!of_weight[input]) continue;
    const std::string& name = values_[input];
    values_[static_cast<std::size_t>(stage.output)] =
        name.starts_with("self.") ? name.substr(5) : name;
    of_weight[static_cast<std::size_t>(stage.output)] = true;
  }
}

std::vector<std::string> PytorchLines::sizes() const {
  std::vector<std::string> lines;
  const Dims& input = plan_.tensor(plan_.input).dims;
  for (std::size_t d = 0; d < input.size(); ++d) {
    const bool needed =
        std::any_of(plan_.stages.begin(), plan_.stages.end(), [&](const Stage& stage) {
          const Dims& batch = stage.convolution.batch;
          return batch.size() > 1 && std::find(batch.begin(), batch.end(), input[d]) != batch.end();
        });
    if (needed && plan_.dim(input[d]).role == DimRole::kFree)
      lines.push_back(size_of(input[d]) + " = x.shape[" + std::to_string(d) + "]");
  }
  return lines;
}

std::string PytorchLines::size_of(int dim) const {
  const PlanDim& named = plan_.dim(dim);
  return named.role == DimRole::kFree ? "size_" + named.name : std::to_string(named.extent);
}

// Zeros before and after some places of a tensor; F.pad counts from the last dimension.
std::string PytorchLines::padded(const std::string& value, const Dims& dims, const Dims& places,
                                 const std::vector<std::int64_t>& before,
                                 const std::vector<std::int64_t>& after) const {
  std::vector<std::int64_t> amounts(2 * dims.size(), 0);
  std::size_t used = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    const std::size_t from_end = dims.size() - 1 - static_cast<std::size_t>(places[i]);
    amounts[2 * from_end] = before[i];
    amounts[2 * from_end + 1] = after[i];
    used = std::max(used, 2 * from_end + 2);
  }
  amounts.resize(used);
  return used == 0 ? value : "F.pad(" + value + ", (" + numbers(amounts) + "))";
}

std::vector<std::string> PytorchLines::shear(const Stage& stage) const {
  const Dims& dims = plan_.tensor(stage.input).dims;
  const std::string all =
      padded(value(stage.input), dims, {stage.axis}, {stage.before}, {stage.after});
  const int axis = stage.axis > stage.second_axis ? stage.axis - 1 : stage.axis;
  const std::string size =
      size_of(plan_.tensor(stage.output).dims[static_cast<std::size_t>(stage.axis)]);
  const std::string second = std::to_string(stage.second_axis);
  const std::string name = value(stage.output);
  return {name + " = " + all, name + " = torch.stack([t.narrow(" + std::to_string(axis) + ", j, " +
                                  size + ") for j, t in enumerate(" + name + ".unbind(" + second +
                                  "))], " + second + ")"};
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

std::vector<std::string> PytorchLines::convolution(const Stage& stage) const {
  const ConvolutionDims& c = stage.convolution;
  std::vector<std::string> lines;
  Dims padded_dims;
  Dims windows;
  bool even_padding = true;
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  for (const SpatialDim& spatial : c.spatial) {
    padded_dims.push_back(spatial.padded);
    if (spatial.window >= 0) windows.push_back(spatial.window);
    before.push_back(spatial.before);
    after.push_back(spatial.after);
    even_padding = even_padding && spatial.before == spatial.after;
  }

  std::string data = value(stage.input);
  const std::size_t channels = c.groups.size() + c.in_channels.size();
  const std::string data_views = permuted(plan_.tensor(stage.input).dims,
                                          concat({c.batch, c.groups, c.in_channels, padded_dims})) +
                                 joined(c.batch.size(), channels) + joined(0, c.batch.size());
  if (!data_views.empty()) lines.push_back("x = " + data + data_views);
  if (!even_padding) {
    Dims places;
    for (std::size_t i = 0; i < c.spatial.size(); ++i) places.push_back(static_cast<int>(2 + i));
    lines.push_back("x = " + padded("x", Dims(2 + c.spatial.size()), places, before, after));
  }

  std::string weight = value(stage.weight);
  const std::size_t filters = c.groups.size() + c.out_channels.size();
  std::string weight_views = permuted(plan_.tensor(stage.weight).dims,
                                      concat({c.groups, c.out_channels, c.in_channels, windows})) +
                             joined(filters, c.in_channels.size()) + joined(0, filters);
  for (std::size_t i = 0; i < c.spatial.size(); ++i) {
    if (c.spatial[i].window < 0) weight_views += call("unsqueeze", std::to_string(2 + i));
  }
  if (!weight_views.empty()) {
    const std::string name = weight.starts_with("self.") ? weight.substr(5) : weight;
    lines.push_back(name + " = " + weight + weight_views);
    weight = name;
  }

  std::string arguments = "x, " + weight;
  if (even_padding && std::any_of(before.begin(), before.end(), [](auto b) { return b > 0; })) {
    arguments +=
        before.size() == 1 ? ", padding=" + numbers(before) : ", padding=(" + numbers(before) + ")";
  }
  std::int64_t groups = 1;
  for (const int dim : c.groups) groups *= plan_.dim(dim).extent;
  if (groups > 1) arguments += ", groups=" + std::to_string(groups);

  std::vector<std::string> channel_sizes;
  for (const int dim : concat({c.groups, c.out_channels})) channel_sizes.push_back(size_of(dim));
  std::vector<std::string> batch_sizes;
  for (const int dim : c.batch) batch_sizes.push_back(size_of(dim));
  lines.push_back("x = F.conv" + std::to_string(c.spatial.size()) + "d(" + arguments + ")" +
                  parted(1, channel_sizes) + parted(0, batch_sizes));
  return lines;
}

std::vector<std::string> PytorchLines::stage(const Stage& stage) const {
  if (stage.kind == StageKind::kConvolution) return convolution(stage);
  if (stage.kind == StageKind::kShear) return shear(stage);
  const std::string& from = value(stage.input);
  const Dims& dims = plan_.tensor(stage.input).dims;
  const std::string axis = std::to_string(stage.axis);
  const auto out_extent = [&](int place) {
    return size_of(plan_.tensor(stage.output).dims[static_cast<std::size_t>(place)]);
  };
  std::string code;
  switch (stage.kind) {
    case StageKind::kPermute: code = from + call("permute", numbers(stage.order)); break;
    case StageKind::kSplit:
      code = from + call("unflatten", axis + ", (" + out_extent(stage.axis) + ", " +
                                          out_extent(stage.axis + 1) + ")");
      break;
    case StageKind::kMerge:
      code = from + call("flatten", axis + ", " + std::to_string(stage.axis + 1));
      break;
    case StageKind::kRoll:
      code = from + call("roll", std::to_string(-stage.amount) + ", " + axis);
      break;
    case StageKind::kSlice: {
      std::vector<std::string> places(static_cast<std::size_t>(stage.axis), ":");
      places.push_back("::" + std::to_string(stage.amount));
      code = from + "[" + list(places) + "]";
      break;
    }
    case StageKind::kExpand: {
      std::vector<std::string> sizes(dims.size() + 1, "-1");
      sizes[static_cast<std::size_t>(stage.axis)] = out_extent(stage.axis);
      code = from + call("unsqueeze", axis) + call("expand", list(sizes));
      break;
    }
    case StageKind::kWindow:
      code = padded(from, dims, {stage.axis}, {stage.before}, {stage.after}) +
             call("unfold", axis + ", " + std::to_string(stage.amount) + ", 1");
      break;
    case StageKind::kScale: code = from + " * " + std::to_string(stage.amount); break;
    case StageKind::kSum: {
      Dims places;
      for (const int dim : stage.summed)
        places.push_back(static_cast<int>(std::find(dims.begin(), dims.end(), dim) - dims.begin()));
      code = from + (places.size() == 1 ? call("sum", numbers(places))
                                        : call("sum", "(" + numbers(places) + ")"));
      break;
    }
    case StageKind::kContract: code = einsum(stage); break;
    case StageKind::kShear:
    case StageKind::kConvolution: throw InternalError("emit_pytorch: not a single line");
  }
  return {value(stage.output) + " = " + code};
}

}  // namespace syno
