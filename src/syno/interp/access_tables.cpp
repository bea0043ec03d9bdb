#include "syno/interp/access_tables.h"

#include <algorithm>
#include <string>

#include "syno/interp/access_map.h"
#include "syno/interp/program.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

class TableMaker {
 public:
  TableMaker(const AccessMap& map, const Program& program, std::int64_t most)
      : program_(program), left_(most) {
    for (const auto* leaves : {&program.iterators, &program.reductions})
      variables_.insert(variables_.end(), leaves->begin(), leaves->end());
    for (const auto* part : {&program.outer, &program.inner})
      instructions_.insert(instructions_.end(), part->begin(), part->end());
    // What an instruction reads stands before it in the graph.
    std::ranges::sort(instructions_, {}, &Instruction::out);
    seen_.assign(map.expressions.size(), false);
  }

  const std::vector<CoordinateId>& variables() const { return variables_; }
  /// Whether a table was made through the coordinate.
  bool seen(CoordinateId id) const { return seen_[static_cast<std::size_t>(id)]; }

  /// The table of a tensor that is read at `ids`.
  AccessTable table(const std::vector<CoordinateId>& ids) {
    std::vector<bool> needed(seen_.size(), false);
    for (const CoordinateId id : ids) needed[static_cast<std::size_t>(id)] = true;
    std::vector<Instruction> steps;
    for (auto step = instructions_.rbegin(); step != instructions_.rend(); ++step) {
      if (!needed[static_cast<std::size_t>(step->out)]) continue;
      steps.push_back(*step);
      for (const CoordinateId below : {step->a, step->b})
        if (below != kNoCoordinate) needed[static_cast<std::size_t>(below)] = true;
    }
    std::ranges::reverse(steps);
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) seen_[i] = true;

    AccessTable made;
    std::vector<CoordinateId> over;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      if (!needed[static_cast<std::size_t>(variables_[v])]) continue;
      made.variables.push_back(static_cast<int>(v));
      over.push_back(variables_[v]);
    }
    made.index.reserve(static_cast<std::size_t>(taken(over)));
    std::vector<std::int64_t> slots(seen_.size(), 0);
    first_index(over, slots);
    do {
      poll_();
      const bool inside = execute(steps, slots);
      made.index.push_back(inside ? flat_index(ids, program_.extents, slots) : -1);
    } while (next_index(over, program_.extents, slots));
    return made;
  }

 private:
  std::int64_t taken(const std::vector<CoordinateId>& over) {
    std::int64_t elements = 1;
    for (const CoordinateId id : over)
      if (elements <= left_) elements = checked_multiply(elements, program_.extent(id), "a table");
    if (elements > left_) {
      throw Complaint("the tables of what the operator reads are too large")
          .expected("at most " + std::to_string(left_) + " elements", "more")
          .hint("use a binding with smaller sizes, such as a batch of one")
          .error();
    }
    left_ -= elements;
    return elements;
  }

  const Program& program_;
  std::int64_t left_;
  std::vector<CoordinateId> variables_;
  std::vector<Instruction> instructions_;
  std::vector<bool> seen_;
  InterruptPoll poll_;
};

}  // namespace

AccessTables access_tables(const Operator& op, const Values& values, std::int64_t most) {
  const AccessMap map = make_access_map(op);
  const Program program(map, values);
  TableMaker maker(map, program, most);
  AccessTables made;
  for (const CoordinateId id : maker.variables()) made.extents.push_back(program.extent(id));
  made.outputs = static_cast<int>(program.iterators.size());
  made.data = maker.table(program.data);
  for (const std::vector<CoordinateId>& weight : program.weights)
    made.weights.push_back(maker.table(weight));
  for (const CoordinateId window : map.windows) {
    if (maker.seen(window)) continue;
    AccessTable mask = maker.table({window});
    for (std::int64_t& index : mask.index) index = std::min<std::int64_t>(index, 0);
    made.masks.push_back(std::move(mask));
  }
  return made;
}

}  // namespace syno
