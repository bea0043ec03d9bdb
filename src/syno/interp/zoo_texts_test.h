// Operators that everybody knows, for the tests of every part: the files of python/syno/operators/zoo, which the Python package
// carries. Each has a small binding whose extents differ where they can, so that a swapped dimension shows.
// zoo_texts_test.cpp checks many of them against loops of their definitions, tests/api/test_zoo.py all of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "syno/support/source_dir_test.h"

namespace syno {

struct ZooText {
  std::string name;
  std::string binding;
  std::string text;
};

inline std::filesystem::path zoo_folder() {
  return std::filesystem::path(kSourceDir) / "python/syno/operators/zoo";
}

inline ZooText zoo_text(const std::string& name) {
  std::ifstream file(zoo_folder() / (name + ".txt"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string sizes = "# sizes: ";
  const std::size_t begin = text.find(sizes);
  if (begin == std::string::npos) throw std::runtime_error("no zoo file with sizes for " + name);
  const std::size_t binding = begin + sizes.size();
  const std::size_t end = text.find('\n', binding);
  return {name, text.substr(binding, end - binding), text.substr(end + 1)};
}

inline std::vector<ZooText> zoo_texts() {
  std::vector<ZooText> texts;
  for (const auto& file : std::filesystem::directory_iterator(zoo_folder())) {
    if (file.path().extension() == ".txt") texts.push_back(zoo_text(file.path().stem().string()));
  }
  std::sort(texts.begin(), texts.end(),
            [](const ZooText& a, const ZooText& b) { return a.name < b.name; });
  return texts;
}

inline const ZooText kConv2d = zoo_text("conv2d");
inline const ZooText kConv1x1 = zoo_text("conv1x1");
inline const ZooText kLinear = zoo_text("linear");
inline const ZooText kDepthwise = zoo_text("depthwise");
inline const ZooText kGrouped = zoo_text("grouped");
inline const ZooText kGroupedShared = zoo_text("grouped-shared");
inline const ZooText kSeparable = zoo_text("depthwise-separable");
inline const ZooText kDilated = zoo_text("dilated");
inline const ZooText kPooledConv = zoo_text("pooled-conv");
inline const ZooText kPixelShuffle = zoo_text("pixel-shuffle");
inline const ZooText kPixelUnshuffle = zoo_text("pixel-unshuffle");
inline const ZooText kShiftConv = zoo_text("shift-conv");
inline const ZooText kSwappedConv1d = zoo_text("conv1d-swapped");
inline const ZooText kTiledProjection = zoo_text("tiled-projection");
inline const ZooText kGpt2Projection = zoo_text("gpt2-projection");
inline const ZooText kWindowByRotation = zoo_text("window-by-rotation");
inline const ZooText kStackedConv = zoo_text("stacked-conv");
inline const ZooText kOperator1 = zoo_text("operator-1");
inline const ZooText kOperator2 = zoo_text("operator-2");
inline const ZooText kOperator07795 = zoo_text("operator-07795");

inline const std::vector<ZooText> kZooTexts = zoo_texts();

}  // namespace syno
