#include "syno/emit/cpp/phases.h"

#include <algorithm>
#include <vector>

#include "syno/emit/cpp/cpp.h"
#include "syno/emit/cpp/lanes.h"
#include "syno/emit/cpp/schedule.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/at.h"
#include "syno/support/text.h"

namespace syno {
namespace {

using cpp::Contraction;
using cpp::RowLoops;

// Fields of an object, in order.
class Fields {
 public:
  Fields& add(std::string_view name, const std::string& value) {
    parts_.push_back("\"" + std::string(name) + "\": " + value);
    return *this;
  }
  Fields& add(std::string_view name, std::int64_t value) {
    return add(name, std::to_string(value));
  }
  Fields& flag(std::string_view name, bool value) { return add(name, value ? "true" : "false"); }
  std::string text() const { return "{" + join(parts_, ", ") + "}"; }

 private:
  std::vector<std::string> parts_;
};

std::string list(const std::vector<std::string>& parts) {
  return "[" + join(parts, ", ") + "]";
}

std::int64_t divisions(const Index& index) {
  std::int64_t count = 0;
  for (const Index::Term& term : index.terms()) {
    if (term.kind != Index::Kind::kAxis) count += 1 + divisions(*term.of);
  }
  return count;
}

class Describer {
 public:
  explicit Describer(const cpp::Schedule& schedule)
      : program_(schedule.program), phases_(schedule.phases) {}

  std::string text() const {
    std::vector<std::string> phases;
    for (const cpp::Phase& phase : phases_) {
      if (!program_.buffer(phase.store).from_weights) phases.push_back(of_phase(phase));
    }
    std::int64_t weights = 0;
    for (const int weight : program_.weights) weights += program_.buffer(weight).elements();
    const std::int64_t batch =
        program_.batched ? program_.buffer(program_.input).shape.front() : std::int64_t{1};
    return Fields()
        .add("batch", batch)
        .add("input", program_.buffer(program_.input).elements() / batch)
        .add("output", program_.buffer(program_.output).elements() / batch)
        .add("weights", weights)
        .add("phases", list(phases))
        .text();
  }

 private:
  std::string of_phase(const cpp::Phase& phase) const {
    const bool is_product = phase.contraction.has_value();
    const LoopNest& nest = is_product ? phase.contraction->nest : phase.rows->nest;
    std::int64_t stored = 1;
    for (std::size_t a = 0; a < nest.outputs; ++a) stored *= nest.axes[a].extent;
    return Fields()
        .add("stored", stored)
        .add("product", is_product ? of_product(*phase.contraction) : "null")
        .add("loops", phase.rows ? of_loops(*phase.rows) : "null")
        .text();
  }

  std::string of_product(const Contraction& c) const {
    std::int64_t panel = c.in_place ? 0 : 1;
    for (const std::int64_t extent : c.panel_shape) panel *= extent;
    return Fields()
        .add("rows", c.row_count())
        .add("columns", c.column_count())
        .add("terms", c.term_count())
        .add("taps", c.tap_count())
        .add("slices", c.slice_count())
        .add("width", c.width())
        .add("blocks", c.private_panel ? c.blocks : 1)
        .add("panel", panel)
        .flag("paired", c.paired)
        .flag("in_place", c.in_place)
        .flag("over_columns", cpp::columns_side_by_side(program_, c))
        .flag("private", c.private_panel)
        .text();
  }

  std::string of_loops(const RowLoops& rows) const {
    const auto extent = [&](std::size_t axis) { return rows.nest.axes[axis].extent; };
    std::int64_t sums = 1;
    std::int64_t inner = 1;
    for (std::size_t a = rows.nest.outputs; a < rows.nest.axes.size(); ++a)
      (a < rows.inner ? sums : inner) *= extent(a);
    std::vector<std::string> operands;
    for (std::size_t o = 0; o < rows.nest.operands.size(); ++o)
      operands.push_back(of_operand(rows, o));
    return Fields()
        .add("count", rows.count())
        .add("lane", rows.lane < 0 ? 1 : extent(at(rows.lane)))
        .add("tile", rows.tile < 0 ? 1 : extent(at(rows.tile)))
        .add("sums", sums)
        .add("inner", inner)
        .add("macs", rows.nest.macs())
        .add("operands", list(operands))
        .text();
  }

  std::string of_operand(const RowLoops& rows, std::size_t o) const {
    const Access& access = rows.nest.operands[o];
    const Index address = flat_address(program_, rows.nest, access);
    const Buffer& buffer = program_.buffer(access.buffer);
    std::int64_t read = 1;
    for (std::size_t a = 0; a < rows.nest.axes.size(); ++a) {
      if (cpp::depends_on(access, static_cast<int>(a))) read *= rows.nest.axes[a].extent;
    }
    std::int64_t parts = divisions(address);
    for (const Condition& condition : access.conditions) parts += divisions(condition.index);
    return Fields()
        .add("elements", buffer.elements())
        .add("read", read)
        .add("lanes", "\"" + std::string(lanes(rows, o, address)) + "\"")
        .flag("in_tile", rows.tile >= 0 && cpp::depends_on(access, rows.tile))
        .flag("in_inner", rows.is_inner[o])
        .flag("from_weights", buffer.from_weights)
        .add("conditions", static_cast<std::int64_t>(access.conditions.size()))
        .add("divisions", parts)
        .text();
  }

  std::string_view lanes(const RowLoops& rows, std::size_t o, const Index& address) const {
    const Access& access = rows.nest.operands[o];
    if (rows.lane < 0 || !cpp::depends_on(access, rows.lane)) return "none";
    switch (cpp::lanes_of(program_, rows.nest, rows.lane, o)) {
      case cpp::Lanes::kPlain: return "plain";
      case cpp::Lanes::kPartial: return "partial";
      case cpp::Lanes::kScattered: break;
    }
    return cpp::is_strided(address, access, rows.lane) ? "strided" : "scattered";
  }

  const LoopProgram& program_;
  const std::vector<cpp::Phase>& phases_;
};

}  // namespace

std::string cpp_phases(const Plan& plan, const CppOptions& options) {
  const cpp::Schedule found = cpp::schedule(plan, options);
  return Describer(found).text();
}

}  // namespace syno
