#include "syno/space/size_space.h"

#include <algorithm>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// A number that no pair of sizes has.
constexpr SizeId kUnknown = -2;
// Sizes that are enumerated before a search: they take about 200 MB and a second.
constexpr std::size_t kMostSizes = 1'000'000;
constexpr FitMask kUnknownFit = ~FitMask{0} - 1;

}  // namespace

SizeSpace::SizeSpace(const Specification& spec) : spec_(spec) {
  list_universe(0, Size());
  std::sort(universe_.begin(), universe_.end(),
            [&](SizeId a, SizeId b) { return size(a) < size(b); });
}

void SizeSpace::list_universe(std::size_t variable, Size so_far) {
  if (so_far.variable_count() > spec_.limits().max_size_variables) return;
  if (variable == spec_.variables()->count()) {
    check_interrupt();
    if (count() == kMostSizes) {
      throw Complaint("the specification allows too many sizes to be searched")
          .where("the products of powers of its variables, each power within the variable's budget")
          .expected("at most " + with_thousands(kMostSizes) + " sizes", "more")
          .hint("lower the budgets of the variables, or max_size_variables")
          .error();
    }
    const SizeId id = intern(so_far);
    if (usable(id)) universe_.push_back(id);
    return;
  }
  const VariableInfo& info = spec_.variable(variable);
  for (int power = info.primary ? 0 : -info.budget; power <= info.budget; ++power) {
    list_universe(variable + 1, power == 0 ? so_far : so_far * Size::variable(variable, power));
  }
}

FitMask SizeSpace::fit_at_most(const Size& size, std::int64_t limit) const {
  FitMask fit = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    const auto value = size.extent(spec_.bindings()[b]);
    if (value && *value <= limit) fit |= FitMask{1} << b;
  }
  return fit;
}

SizeId SizeSpace::intern(const Size& size) {
  const auto [place, is_new] = ids_.emplace(size, static_cast<SizeId>(entries_.size()));
  if (!is_new) return place->second;
  Entry entry;
  entry.size = size;
  for (const Values& values : spec_.bindings())
    entry.values.push_back(size.extent(values).value_or(0));
  entry.legal = spec_.legal(size);
  entry.fit = spec_.fit(size);
  entry.usable = entry.legal && spec_.fit_suffices(entry.fit);
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    const std::int64_t value = entry.values[b];
    const bool odd = value % 2 == 1 || (value > 0 && spec_.limits().even_windows);
    if (odd) entry.odd_fit |= FitMask{1} << b;
    if (odd && value <= spec_.limits().max_window) entry.window_fit |= FitMask{1} << b;
  }
  // Dimensions of the output may be beyond the limits of sizes; they can leave like others.
  if (spec_.fit_suffices(entry.fit)) {
    entry.window = spec_.fit_suffices(entry.window_fit);
    entry.droppable = spec_.fit_suffices(fit_at_most(size, spec_.limits().max_dropped));
    entry.poolable = spec_.fit_suffices(fit_at_most(size, spec_.limits().max_pooling));
    entry.joinable = spec_.fit_suffices(fit_at_most(size, spec_.limits().max_joined));
  }
  entries_.push_back(std::move(entry));
  return place->second;
}

FitMask SizeSpace::slide_fit(SizeId extent, SizeId window) {
  FitMask& known = slides_.at(extent, window, kUnknownFit);
  if (known != kUnknownFit) return known;
  FitMask fit = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    const std::int64_t n = value(extent, b);
    const std::int64_t k = value(window, b);
    if (n > 0 && k > 0 &&
        static_cast<double>(n) >= spec_.limits().min_unfold_ratio * static_cast<double>(k))
      fit |= FitMask{1} << b;
  }
  return known = fit;
}

bool SizeSpace::slides(SizeId extent, SizeId window) {
  return is_window(window) && spec_.fit_suffices(slide_fit(extent, window));
}

SizeId SizeSpace::times(SizeId a, SizeId b) {
  if (a > b) std::swap(a, b);
  SizeId& known = products_.at(a, b, kUnknown);
  return known != kUnknown ? known : known = intern(size(a) * size(b));
}

SizeId SizeSpace::over(SizeId a, SizeId b) {
  SizeId& known = ratios_.at(a, b, kUnknown);
  return known != kUnknown ? known : known = intern(size(a) / size(b));
}

SizeId SizeSpace::product(SizeId a, SizeId b) {
  const SizeId id = times(a, b);
  return usable(id) ? id : kNoSize;
}

const std::vector<SizeId>& SizeSpace::blocks(SizeId n) {
  find_blocks(n);
  return entries_[static_cast<std::size_t>(n)].blocks;
}

const std::vector<SizeId>& SizeSpace::quotients(SizeId n) {
  find_blocks(n);
  return entries_[static_cast<std::size_t>(n)].quotients;
}

void SizeSpace::restrict_blocks(bool no_primaries, bool no_fixed) {
  no_primary_blocks_ = no_primaries;
  no_fixed_pieces_ = no_fixed;
  for (Entry& entry : entries_) {
    entry.blocks_known = false;
    entry.blocks.clear();
    entry.quotients.clear();
  }
}

bool SizeSpace::has_primary(const Size& size, bool fixed) const {
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    const VariableInfo& info = spec_.variable(v);
    if (info.primary && (!fixed || info.budget == 0) && size.power(v) != 0) return true;
  }
  return false;
}

bool SizeSpace::in_shapes(const Size& size) const {
  for (const Shape* shape : {&spec_.input(), &spec_.output()}) {
    for (const Dimension& dim : *shape) {
      if (dim.size == size) return true;
    }
  }
  return false;
}

// Blocks come from the universe: a variable of budget 0 never enters one.
void SizeSpace::find_blocks(SizeId n) {
  if (entries_[static_cast<std::size_t>(n)].blocks_known) return;
  std::vector<std::pair<SizeId, SizeId>> found;
  for (const SizeId block : universe_) {
    if (no_primary_blocks_ && has_primary(size(block), false)) continue;
    const SizeId quotient = intern(size(n) / size(block));
    if (no_fixed_pieces_ && ((has_primary(size(quotient), true) && !in_shapes(size(quotient))) ||
                             (has_primary(size(block), true) && !in_shapes(size(block)))))
      continue;
    if (usable(quotient)) found.emplace_back(block, quotient);
  }
  Entry& entry = entries_[static_cast<std::size_t>(n)];
  entry.blocks_known = true;
  for (const auto& [block, quotient] : found) {
    entry.blocks.push_back(block);
    entry.quotients.push_back(quotient);
  }
}

}  // namespace syno
