// What every emitter returns: source text, and a manifest of what it takes and gives.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "syno/plan/loop_nest.h"
#include "syno/plan/plan.h"

namespace syno {

struct ManifestDim {
  std::string name;
  std::int64_t extent = 1;
  /// Any size at run time; `extent` is the one the plan was costed with.
  bool free = false;
};

struct Manifest {
  std::string emitter;
  std::string entry;  ///< the class or function to use
  std::vector<ManifestDim> input;
  std::vector<ManifestDim> output;
  /// Names and shapes, in canonical order.
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> weights;
  std::int64_t macs = 0;
  std::int64_t params = 0;
  /// Names of the tensors between contractions that are stored as codes of 8 bits, in the order of their scales.
  std::vector<std::string> codes;

  /// {"emitter": "pytorch", "entry": ..., "input": [{"name": "n", "extent": 1, "free": true}, ...], ...}
  std::string json() const;
};

struct Source {
  std::string text;
  Manifest manifest;
};

/// The manifest of a plan; `emitter` and `entry` name what was emitted.
Manifest make_manifest(const Plan& plan, std::string emitter, std::string entry);
/// The same of loop nests, in which no dimension is free but the batch.
Manifest make_manifest(const Plan& plan, const LoopProgram& program, std::string emitter,
                       std::string entry);

}  // namespace syno
