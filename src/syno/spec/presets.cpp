#include "syno/spec/presets.h"

#include <array>
#include <cmath>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// One kind of layer of a convolutional network: channels, map size, kernel, how many there are.
struct Layer {
  std::int64_t c_in;
  std::int64_t c_out;
  std::int64_t h;
  std::int64_t kernel;
  std::int64_t count;
};

SpecificationSource vision() {
  SpecificationSource source;
  source.input = "[N, C_in: unordered, H, H]";
  source.output = "[N, C_out: unordered, H, H]";
  source.primary = {"N: 0", "C_in: 2", "C_out: 4", "H: 0"};
  source.coefficient = {"k_1=3: 2", "k_2=7: 2", "s=2: 2", "g=32: 3"};
  source.passed_through = {{0, 0}};
  source.limits.min_weight_params = 100;
  return source;
}

// Adds the layers, equal shapes in one binding, and the window of MACs as shares of the whole network.
void add_layers(SpecificationSource& source, const std::vector<Layer>& layers,
                double untouched_macs, double low, double high) {
  double total = untouched_macs;
  for (const Layer& layer : layers) {
    const double macs = static_cast<double>(layer.c_in * layer.c_out * layer.h * layer.h *
                                            layer.kernel * layer.kernel * layer.count);
    total += macs;
    const Binding binding({{"C_in", layer.c_in}, {"C_out", layer.c_out}, {"H", layer.h}});
    std::size_t place = 0;
    while (place < source.bindings.size() && !(source.bindings[place] == binding)) ++place;
    if (place == source.bindings.size()) {
      source.bindings.push_back(binding);
      source.multiplicities.push_back(0);
      source.layer_macs.push_back(0);
    }
    source.multiplicities[place] += layer.count;
    source.layer_macs[place] += macs;
  }
  const auto replaced = [&](double share) {
    return static_cast<std::int64_t>(std::llround(std::max(0.0, share * total - untouched_macs)));
  };
  source.limits.min_macs = replaced(low);
  source.limits.max_macs = replaced(high);
}

// 224 px: the 7x7 stem with 3 input channels and the classifier keep their layers.
constexpr double kStemAndClassifier = 64.0 * 3 * 49 * 112 * 112 + 512.0 * 1000;

// `blocks` says how many 3x3 convolutions each of the four stages has that keep its channels.
SpecificationSource resnet(const std::array<std::int64_t, 4>& blocks) {
  std::vector<Layer> layers{{64, 64, 56, 3, blocks[0]}};
  std::int64_t channels = 64;
  std::int64_t size = 56;
  for (std::size_t stage = 1; stage < blocks.size(); ++stage) {
    const std::int64_t before = channels;
    channels *= 2;
    size /= 2;
    layers.push_back({before, channels, size, 3, 1});
    layers.push_back({before, channels, size, 1, 1});
    layers.push_back({channels, channels, size, 3, blocks[stage]});
  }
  SpecificationSource source = vision();
  add_layers(source, layers, kStemAndClassifier, 0.15, 0.9);
  return source;
}

SpecificationSource resnet18() {
  return resnet({4, 3, 3, 3});
}
SpecificationSource resnet34() {
  return resnet({6, 7, 11, 5});
}

SpecificationSource densenet121() {
  SpecificationSource source = vision();
  source.limits.max_dropped = 5120;
  source.bindings = {Binding({{"C_in", 128}, {"C_out", 32}, {"H", 56}}),
                     Binding({{"C_in", 128}, {"C_out", 32}, {"H", 28}}),
                     Binding({{"C_in", 128}, {"C_out", 32}, {"H", 14}}),
                     Binding({{"C_in", 128}, {"C_out", 32}, {"H", 7}})};
  source.multiplicities = {6, 12, 24, 16};
  return source;
}

SpecificationSource efficientnet_v2_s() {
  SpecificationSource source = vision();
  source.limits.max_dropped = 6144;
  source.limits.max_joined = 24;
  source.bindings = {Binding({{"C_in", 24}, {"C_out", 24}, {"H", 112}}),
                     Binding({{"C_in", 24}, {"C_out", 96}, {"H", 56}}),
                     Binding({{"C_in", 48}, {"C_out", 192}, {"H", 56}}),
                     Binding({{"C_in", 48}, {"C_out", 192}, {"H", 28}}),
                     Binding({{"C_in", 64}, {"C_out", 256}, {"H", 28}})};
  source.multiplicities = {2, 1, 3, 1, 3};
  // With 24 and 48 channels a group of 32 does not divide everywhere; an operator fits most of the network instead.
  source.limits.min_fit = 0.5;
  return source;
}

SpecificationSource resnext29() {
  SpecificationSource source = vision();
  source.limits.max_merges = 2;
  source.limits.max_dropped = 4096;
  source.bindings = {Binding({{"C_in", 128}, {"C_out", 128}, {"H", 56}}),
                     Binding({{"C_in", 256}, {"C_out", 256}, {"H", 28}}),
                     Binding({{"C_in", 512}, {"C_out", 512}, {"H", 14}}),
                     Binding({{"C_in", 1024}, {"C_out", 1024}, {"H", 7}})};
  source.multiplicities = {3, 3, 3, 1};
  return source;
}

SpecificationSource gpt2() {
  SpecificationSource source;
  source.input = "[N, seq_len, H_in: unordered]";
  source.output = "[N, seq_len, t*H_in]";
  source.primary = {"N: 0", "seq_len: 0", "H_in: 4"};
  source.coefficient = {"k_1=2: 3", "k_2=5: 2", "t=3: 3", "g=32: 3"};
  source.passed_through = {{0, 0}};
  source.bindings = {Binding({{"seq_len", 2048}, {"H_in", 768}})};
  source.multiplicities = {12};
  Limits& limits = source.limits;
  limits.max_depth = 7;
  limits.max_chain_length = 5;
  limits.max_merges = 2;
  limits.max_splits = 2;
  limits.min_weight_params = 100000;
  limits.max_dropped = 6144;
  limits.max_repeat = 5;
  return source;
}

SpecificationSource vit() {
  SpecificationSource source;
  source.input = "[N, seq_len, H_in: unordered]";
  source.output = "[N, seq_len, H_out: unordered]";
  source.primary = {"N: 0", "seq_len: 0", "H_in: 2", "H_out: 3"};
  source.coefficient = {"k_1=3: 3", "s=2: 3", "g=384: 3"};
  source.passed_through = {{0, 0}};
  source.bindings = {Binding({{"seq_len", 197}, {"H_in", 768}, {"H_out", 3072}}),
                     Binding({{"seq_len", 197}, {"H_in", 3072}, {"H_out", 768}})};
  source.multiplicities = {12, 12};
  source.limits.max_dropped = 6144;
  return source;
}

SpecificationSource gcn() {
  SpecificationSource source;
  source.input = "[N, H_in: unordered]";
  source.output = "[N, H_out: unordered]";
  source.primary = {"N: 0", "H_in: 2", "H_out: 2"};
  source.coefficient = {"k_1=2: 2", "k_2=3: 2", "k_3=5: 2"};
  return source;
}

SpecificationSource readme() {
  SpecificationSource source;
  source.input = "[H, W]";
  source.output = "[H, W]";
  source.primary = {"H: 2", "W: 2"};
  source.coefficient = {"s_1=2: 2", "s_2=3: 2"};
  return source;
}

struct Preset {
  std::string_view name;
  std::string_view doc;
  SpecificationSource (*make)();
};

constexpr Preset kPresets[] = {
    {"paper/resnet18", "convolutions of ResNet-18 at 224 px: 19 layers, 7 bindings", resnet18},
    {"paper/resnet34", "convolutions of ResNet-34 at 224 px: 35 layers, 7 bindings", resnet34},
    {"paper/resnext29_2x64d",
     "3x3 convolutions of ResNeXt-29-2x64d at 224 px: 10 layers, 4 bindings", resnext29},
    {"paper/efficientnet_v2_s",
     "3x3 convolutions of EfficientNetV2-S at 224 px: 10 layers, 5 bindings", efficientnet_v2_s},
    {"paper/densenet121", "3x3 convolutions of DenseNet-121 at 224 px: 58 layers, 4 bindings",
     densenet121},
    {"paper/gpt2", "QKV projections of GPT-2 (117M): 12 layers, 1 binding", gpt2},
    {"paper/vit", "linear layers of the MLPs of ViT-B/16: 24 layers, 2 bindings", vit},
    {"paper/gcn",
     "linear layers of a graph convolutional network; takes its bindings from the network", gcn},
    {"paper/readme",
     "the example of the original's README: [H, W] -> [H, W]; takes its bindings from the network",
     readme},
};

const Preset& find_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
  }
  throw UserError("unknown preset '" + std::string(name) +
                  "'\n  known presets: " + join(preset_names(), ", "));
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::string preset_doc(std::string_view name) {
  return std::string(find_preset(name).doc);
}

SpecificationSource preset(std::string_view name) {
  return find_preset(name).make();
}

}  // namespace syno
