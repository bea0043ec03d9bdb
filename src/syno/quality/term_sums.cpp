#include "syno/quality/term_sums.h"

#include <algorithm>
#include <map>

#include "syno/support/interrupt.h"
#include "syno/support/mix.h"

namespace syno {
namespace {

// Entries that the innermost loop of a product runs through.
constexpr std::size_t kInnerLoop = 4096;

bool holds(const std::vector<int>& list, int v) {
  return std::find(list.begin(), list.end(), v) != list.end();
}

void add_once(std::vector<int>& list, int v) {
  if (!holds(list, v)) list.push_back(v);
}

}  // namespace

std::uint64_t field::inverse(std::uint64_t x) {
  std::uint64_t result = 1;
  for (std::uint64_t power = kPrime - 2; power > 0; power >>= 1) {
    if ((power & 1) != 0) result = multiply(result, x);
    x = multiply(x, x);
  }
  return result;
}

std::uint64_t TermSums::number(int round, int id, std::int64_t value) {
  const std::uint64_t coordinate =
      mix_bits(static_cast<std::uint64_t>(round) * kGoldenRatio + static_cast<std::uint64_t>(id));
  const std::uint64_t x =
      mix_bits(coordinate + (static_cast<std::uint64_t>(value) + 1) * 0xD6E8FEB86659FD93ULL);
  return x % (field::kPrime - 1) + 1;
}

TermSums::TermSums(const Component& part, const Program& program,
                   const std::vector<CoordinateId>& visible) {
  std::map<CoordinateId, CoordinateId> number;
  for (const CoordinateId id : part.coordinates) {
    number[id] = static_cast<CoordinateId>(variables_.size());
    variables_.push_back({program.extent(id), false, false, true});
  }
  for (const CoordinateId id : part.iterators) variable(number[id]).kept = true;
  for (const CoordinateId id : visible) variable(number[id]).visible = true;
  for (Instruction step : instructions(program, part)) {
    step.out = number[step.out];
    step.a = number[step.a];
    if (step.b != kNoCoordinate) step.b = number[step.b];
    // The two results of a Merge are one function.
    Function* merge =
        step.kind == ExpressionKind::kQuotient || step.kind == ExpressionKind::kRemainder
            ? consumer(step.a)
            : nullptr;
    if (merge == nullptr) {
      functions_.push_back({{}, {step.a}, {}, false});
      if (step.b != kNoCoordinate) functions_.back().in.push_back(step.b);
      merge = &functions_.back();
    }
    merge->steps.push_back(step);
    merge->out.push_back(step.out);
  }
  while (peel() || swap()) {
  }
  while (fuse()) {
  }
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const int id = static_cast<int>(v);
    bound_.push_back(producer(id) != nullptr || consumer(id) != nullptr);
  }
}

TermSums::Function* TermSums::producer(int v) {
  for (Function& function : functions_) {
    if (!function.done && holds(function.out, v)) return &function;
  }
  return nullptr;
}

TermSums::Function* TermSums::consumer(int v) {
  for (Function& function : functions_) {
    if (!function.done && holds(function.in, v)) return &function;
  }
  return nullptr;
}

// Removes one step that is one to one between what is below and above it: an index is renamed, and a coordinate that is
// seen above is seen below. False when there is none.
bool TermSums::peel() {
  for (std::size_t f = 0; f < functions_.size(); ++f) {
    Function& function = functions_[f];
    const ExpressionKind kind = function.steps[0].kind;
    const bool merge = function.out.size() == 2;
    const auto used = [&](int v) { return consumer(v) != nullptr; };
    bool removed = false;
    if (kind == ExpressionKind::kWindow) {
      // Over a sum of its own, which takes all N values, a window with K <= N shows its index: the sums that belong to
      // its values are intervals, [0, N-1-p]..[0, N-1] and [1, N-1]..[K-1-p, N-1], and those are linearly independent.
      Variable& slid = variable(function.steps[0].a);
      Variable& index = variable(function.steps[0].b);
      if (producer(function.steps[0].a) == nullptr && !slid.kept && !slid.visible &&
          variable(function.out[0]).visible && !used(function.out[0]) &&
          index.extent <= slid.extent) {
        index.visible = true;
        slid.exists = variable(function.out[0]).exists = false;
        removed = true;
      }
    } else if ((kind == ExpressionKind::kCyclicShift || merge) &&
               producer(function.in[0]) == nullptr) {
      Variable& in = variable(function.in[0]);
      for (const int out : function.out) {
        variable(out).kept = in.kept;
        variable(out).visible = variable(out).visible || in.visible;
      }
      in.exists = false;
      removed = true;
    } else if (kind == ExpressionKind::kMixed &&
               std::all_of(function.in.begin(), function.in.end(), [&](int v) {
                 return producer(v) == nullptr && !variable(v).kept && !variable(v).visible;
               })) {
      // Two sums of their own are one over all pairs.
      for (const int in : function.in) variable(in).exists = false;
      removed = true;
    } else if (std::none_of(function.out.begin(), function.out.end(), used)) {
      const auto seen =
          static_cast<std::size_t>(std::count_if(function.out.begin(), function.out.end(),
                                                 [&](int out) { return variable(out).visible; }));
      if ((seen == 0 || seen == function.out.size())) {
        for (const int in : function.in) variable(in).visible = variable(in).visible || seen > 0;
        for (const int out : function.out) variable(out).exists = false;
        removed = true;
      }
    }
    if (!removed) continue;
    functions_.erase(functions_.begin() + static_cast<std::ptrdiff_t>(f));
    return true;
  }
  return false;
}

// Takes a Merge before the Split below it where the digits agree: for c = size*i + j and block = size / u or size * u,
//     c div block = u*i + j div block,    c mod block = j mod block
//     c div block = i div u,              c mod block = size*(i mod u) + j
bool TermSums::swap() {
  for (Function& merge : functions_) {
    if (merge.out.size() != 2) continue;
    Function* split = producer(merge.in[0]);
    if (split == nullptr || split->steps[0].kind != ExpressionKind::kMixed ||
        variable(merge.in[0]).visible) {
      continue;
    }
    const CoordinateId i = split->steps[0].a;
    const CoordinateId j = split->steps[0].b;
    const std::int64_t size = split->steps[0].size;
    const std::int64_t block = merge.steps[0].size;
    const bool finer = size % block == 0;
    const std::int64_t unit = finer ? size / block : block / size;
    if (!finer && (block % size != 0 || variable(i).extent % unit != 0)) continue;
    const bool first_is_quotient = merge.steps[0].kind == ExpressionKind::kQuotient;
    const CoordinateId quotient = merge.steps[first_is_quotient ? 0 : 1].out;
    const CoordinateId remainder = merge.steps[first_is_quotient ? 1 : 0].out;
    variable(merge.in[0]).exists = false;
    const auto part = static_cast<CoordinateId>(variables_.size());
    variables_.push_back({unit, false, false, true});
    const CoordinateId cut = finer ? j : i;
    const std::int64_t by = finer ? block : unit;
    const CoordinateId high = finer ? part : quotient;
    const CoordinateId low = finer ? remainder : part;
    merge = {{{ExpressionKind::kQuotient, high, cut, kNoCoordinate, by, 0, variable(high).extent},
              {ExpressionKind::kRemainder, low, cut, kNoCoordinate, by, 0, variable(low).extent}},
             {cut},
             {high, low},
             false};
    const CoordinateId a = finer ? i : part;
    const CoordinateId b = finer ? part : j;
    const CoordinateId whole = finer ? quotient : remainder;
    *split = {
        {{ExpressionKind::kMixed, whole, a, b, finer ? unit : size, 0, variable(whole).extent}},
        {a, b},
        {whole},
        false};
    return true;
  }
  return false;
}

// Makes one function of a step without a mask and the one that uses its result: as many points, but the result is no
// variable any more.
bool TermSums::fuse() {
  for (std::size_t f = 0; f < functions_.size(); ++f) {
    if (functions_[f].out.size() != 1 ||
        functions_[f].steps.back().kind == ExpressionKind::kWindow) {
      continue;
    }
    const int out = functions_[f].out[0];
    Function* user = consumer(out);
    if (user == nullptr || variable(out).visible) continue;
    Function below = std::move(functions_[f]);
    user->in.erase(std::find(user->in.begin(), user->in.end(), out));
    for (const int v : below.in) add_once(user->in, v);
    user->steps.insert(user->steps.begin(), below.steps.begin(), below.steps.end());
    variable(out).exists = false;
    functions_.erase(functions_.begin() + static_cast<std::ptrdiff_t>(f));
    return true;
  }
  return false;
}

std::int64_t TermSums::product(const std::vector<int>& list) const {
  std::int64_t result = 1;
  for (const int v : list) {
    if (__builtin_mul_overflow(result, extents_[static_cast<std::size_t>(v)], &result) ||
        result > kMaxWork)
      return kMaxWork + 1;
  }
  return result;
}

// Whether something other than the move needs the variable.
bool TermSums::stays(int v, const Move& move) const {
  if (variable(v).kept) return true;
  for (const Function& function : functions_) {
    if (!function.done && &function != move.function &&
        (holds(function.in, v) || holds(function.out, v))) {
      return true;
    }
  }
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (holds(tables_[t].variables, v) &&
        std::find(move.joined.begin(), move.joined.end(), t) == move.joined.end()) {
      return true;
    }
  }
  return false;
}

void TermSums::price(Move& move) const {
  std::vector<int> points = move.others;
  if (move.function != nullptr) {
    for (const std::vector<int>* list : {&move.function->in, &move.function->out}) {
      for (const int v : *list) {
        if (stays(v, move)) move.left.push_back(v);
      }
    }
    points.insert(points.end(), move.function->in.begin(), move.function->in.end());
  }
  for (const int v : move.others) {
    if (v != move.variable && stays(v, move)) move.left.push_back(v);
  }
  move.work = std::max<std::int64_t>(1, product(points)) + product(move.left);
}

TermSums::Move TermSums::cheapest() {
  Move best;
  const auto offer = [&](Move move) {
    price(move);
    if (best.work == 0 || move.work < best.work) best = std::move(move);
  };
  for (Function& function : functions_) {
    if (function.done) continue;
    // With the tables whose variables are all the function's, and with all that share one with it.
    Move narrow;
    Move wide;
    narrow.function = wide.function = &function;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      bool all = true;
      bool any = false;
      for (const int v : tables_[t].variables) {
        const bool own = holds(function.in, v) || holds(function.out, v);
        all = all && own;
        any = any || own;
      }
      if (all) narrow.joined.push_back(t);
      if (!any) continue;
      wide.joined.push_back(t);
      for (const int v : tables_[t].variables) {
        if (!holds(function.in, v) && !holds(function.out, v)) add_once(wide.others, v);
      }
    }
    const bool differ = narrow.joined.size() != wide.joined.size();
    offer(std::move(narrow));
    if (differ) offer(std::move(wide));
  }
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const int id = static_cast<int>(v);
    if (variables_[v].kept || producer(id) != nullptr || consumer(id) != nullptr) continue;
    Move move;
    move.variable = id;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      if (!holds(tables_[t].variables, id)) continue;
      move.joined.push_back(t);
      for (const int other : tables_[t].variables) add_once(move.others, other);
    }
    if (!move.joined.empty()) offer(std::move(move));
  }
  return best;
}

// The product of the tables joined, where the results of the function are those of its arguments, summed over what does
// not stay.
void TermSums::make(const Move& move) {
  Table result{move.left, {}};
  result.entries.assign(static_cast<std::size_t>(product(move.left)), {});
  std::vector<const Table*> tensors;
  for (const std::size_t t : move.joined) tensors.push_back(&tables_[t]);
  tensors.push_back(&result);

  const auto stride = [&](const Table& table, int v) {
    std::int64_t inner = 1;
    for (std::size_t d = table.variables.size(); d-- > 0;) {
      if (table.variables[d] == v) return inner;
      inner *= extents_[static_cast<std::size_t>(table.variables[d])];
    }
    return std::int64_t{0};
  };
  // The last of the other variables are run through in an inner loop, by lists of offsets in each tensor.
  std::size_t outer = move.others.size();
  std::size_t repeat = 1;
  while (outer > 0) {
    const auto extent =
        static_cast<std::size_t>(extents_[static_cast<std::size_t>(move.others[outer - 1])]);
    if (repeat > 1 && repeat * extent > kInnerLoop) break;
    repeat *= extent;
    --outer;
  }
  std::vector<std::vector<std::int32_t>> offsets(tensors.size(),
                                                 std::vector<std::int32_t>(repeat, 0));
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::size_t block = 1;
    for (std::size_t d = move.others.size(); d-- > outer;) {
      const auto extent =
          static_cast<std::size_t>(extents_[static_cast<std::size_t>(move.others[d])]);
      const auto step = static_cast<std::int32_t>(stride(*tensors[t], move.others[d]));
      for (std::size_t i = block; i < block * extent; ++i)
        offsets[t][i] = offsets[t][i - block] + step;
      block *= extent;
    }
  }

  // All else in an outer loop: the variables of the function and the first of the others.
  std::vector<int> counted(move.others.begin(),
                           move.others.begin() + static_cast<std::ptrdiff_t>(outer));
  std::vector<int> placed = counted;
  if (move.function != nullptr) {
    for (const int v : move.function->in) counted.push_back(v);
    for (const std::vector<int>* list : {&move.function->in, &move.function->out})
      placed.insert(placed.end(), list->begin(), list->end());
  }
  std::vector<std::vector<std::int64_t>> strides;
  for (const Table* tensor : tensors) {
    strides.emplace_back();
    for (const int v : placed) strides.back().push_back(stride(*tensor, v));
  }
  std::vector<std::int64_t> values(variables_.size(), 0);
  std::vector<std::int64_t> base(tensors.size(), 0);
  const auto next = [&] {
    for (std::size_t i = counted.size(); i-- > 0;) {
      std::int64_t& value = values[static_cast<std::size_t>(counted[i])];
      if (++value < extents_[static_cast<std::size_t>(counted[i])]) return true;
      value = 0;
    }
    return false;
  };
  InterruptPoll poll(256);
  do {
    poll();
    if (move.function != nullptr && !execute(move.function->steps, values)) continue;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      base[t] = 0;
      for (std::size_t i = 0; i < placed.size(); ++i)
        base[t] += strides[t][i] * values[static_cast<std::size_t>(placed[i])];
    }
    TermSum* sums = result.entries.data() + base.back();
    const std::int32_t* places = offsets.back().data();
    const auto add = [](TermSum& sum, const TermSum& term) {
      sum.value = field::reduce(sum.value + term.value);
      sum.terms += term.terms;
    };
    const auto factor = [&](std::size_t t, std::size_t i) -> const TermSum& {
      return tensors[t]->entries[static_cast<std::size_t>(base[t] + offsets[t][i])];
    };
    for (std::size_t i = 0; i < repeat; ++i) {
      TermSum term = tensors.size() > 1 ? factor(0, i) : TermSum{1, 1};
      for (std::size_t t = 1; t + 1 < tensors.size(); ++t) {
        term.value = field::multiply(term.value, factor(t, i).value);
        term.terms *= factor(t, i).terms;
      }
      add(sums[places[i]], term);
    }
  } while (next());

  if (move.function != nullptr) move.function->done = true;
  for (std::size_t n = move.joined.size(); n-- > 0;)
    tables_.erase(tables_.begin() + static_cast<std::ptrdiff_t>(move.joined[n]));
  tables_.push_back(std::move(result));
}

bool TermSums::join_tables() {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    for (std::size_t j = i + 1; j < tables_.size(); ++j) {
      const bool apart = std::none_of(tables_[j].variables.begin(), tables_[j].variables.end(),
                                      [&](int v) { return holds(tables_[i].variables, v); });
      if (apart) continue;
      Move move;
      move.joined = {i, j};
      move.others = tables_[i].variables;
      for (const int v : tables_[j].variables) add_once(move.others, v);
      price(move);
      work_ += move.work;
      if (work_ > kMaxWork) return false;
      make(move);
      return join_tables();
    }
  }
  return true;
}

bool TermSums::run(int round, std::int64_t most_work) {
  extents_.clear();
  for (const Variable& variable : variables_) extents_.push_back(variable.extent);
  return run_on(round, most_work);
}

bool TermSums::run_cut(int round, int cut, std::int64_t most) {
  extents_.clear();
  for (const Variable& variable : variables_) extents_.push_back(variable.extent);
  std::int64_t& extent = extents_[static_cast<std::size_t>(cut)];
  extent = std::min(extent, most);
  return run_on(round, kMaxWorkOfPart);
}

bool TermSums::run_on(int round, std::int64_t most_work) {
  tables_.clear();
  work_ = 0;
  for (Function& function : functions_) function.done = false;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    if (!variables_[v].exists || !variables_[v].visible || !bound_[v]) continue;
    work_ += extents_[v];
    if (work_ > most_work) return false;
    Table table{{static_cast<int>(v)}, {}};
    for (std::int64_t x = 0; x < extents_[v]; ++x)
      table.entries.push_back({number(round, static_cast<int>(v), x), 1});
    tables_.push_back(std::move(table));
  }
  for (Move move = cheapest(); move.work > 0; move = cheapest()) {
    work_ += move.work;
    if (work_ > most_work) return false;
    make(move);
  }
  return join_tables();
}

std::vector<int> TermSums::indices() const {
  std::vector<int> result;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].exists && variables_[v].kept && bound_[v])
      result.push_back(static_cast<int>(v));
  }
  return result;
}

std::vector<std::int64_t> TermSums::repeated() const {
  std::vector<std::int64_t> result;
  for (std::size_t v = 0; v < variables_.size(); ++v) {
    const Variable& variable = variables_[v];
    if (variable.exists && variable.kept && !variable.visible && !bound_[v] && variable.extent > 1)
      result.push_back(variable.extent);
  }
  return result;
}

}  // namespace syno
