#include "syno/emit/source.h"

#include "syno/support/json.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using json::quoted;

std::string dims_json(const std::vector<ManifestDim>& dims) {
  std::vector<std::string> parts;
  for (const ManifestDim& dim : dims) {
    parts.push_back("{\"name\": " + quoted(dim.name) +
                    ", \"extent\": " + std::to_string(dim.extent) +
                    ", \"free\": " + (dim.free ? "true" : "false") + "}");
  }
  return "[" + join(parts, ", ") + "]";
}

std::vector<ManifestDim> dims_of(const Plan& plan, int tensor) {
  std::vector<ManifestDim> dims;
  for (const int d : plan.tensor(tensor).dims) {
    const PlanDim& dim = plan.dim(d);
    dims.push_back({dim.name, dim.extent, dim.role == DimRole::kFree});
  }
  return dims;
}

}  // namespace

std::string Manifest::json() const {
  std::vector<std::string> parts;
  for (const auto& [name, shape] : weights) {
    std::vector<std::string> extents;
    for (const std::int64_t extent : shape) extents.push_back(std::to_string(extent));
    parts.push_back("{\"name\": " + quoted(name) + ", \"shape\": [" + join(extents, ", ") + "]}");
  }
  std::vector<std::string> coded;
  for (const std::string& name : codes) coded.push_back(quoted(name));
  return "{\"emitter\": " + quoted(emitter) + ", \"entry\": " + quoted(entry) +
         ", \"input\": " + dims_json(input) + ", \"output\": " + dims_json(output) +
         ", \"weights\": [" + join(parts, ", ") + "], \"macs\": " + std::to_string(macs) +
         ", \"params\": " + std::to_string(params) +
         (coded.empty() ? "" : ", \"codes\": [" + join(coded, ", ") + "]") + "}";
}

Manifest make_manifest(const Plan& plan, std::string emitter, std::string entry) {
  Manifest manifest;
  manifest.emitter = std::move(emitter);
  manifest.entry = std::move(entry);
  manifest.input = dims_of(plan, plan.input);
  manifest.output = dims_of(plan, plan.output);
  for (const int weight : plan.weights)
    manifest.weights.emplace_back(plan.tensor_name(weight), plan.shape(weight));
  manifest.macs = plan.cost.macs;
  manifest.params = plan.params;
  return manifest;
}

Manifest make_manifest(const Plan& plan, const LoopProgram& program, std::string emitter,
                       std::string entry) {
  Manifest manifest = make_manifest(plan, std::move(emitter), std::move(entry));
  for (auto* dims : {&manifest.input, &manifest.output}) {
    for (std::size_t d = 0; d < dims->size(); ++d) (*dims)[d].free = d == 0 && program.batched;
  }
  return manifest;
}

}  // namespace syno
