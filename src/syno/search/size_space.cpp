#include "syno/search/size_space.h"

#include <algorithm>

namespace syno {
namespace {

std::uint64_t pair_key(SizeId a, SizeId b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
         static_cast<std::uint32_t>(b);
}

}  // namespace

SizeSpace::SizeSpace(const Specification& spec) : spec_(spec) {
  list_universe(0, Size());
  std::sort(universe_.begin(), universe_.end(),
            [&](SizeId a, SizeId b) { return size(a) < size(b); });
}

void SizeSpace::list_universe(std::size_t variable, Size so_far) {
  if (so_far.variable_count() > spec_.limits().max_size_variables) return;
  if (variable == spec_.variables()->count()) {
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
  entry.usable = spec_.legal(size) && spec_.fit_suffices(spec_.fit(size));
  if (entry.usable) {
    FitMask fit = 0;
    for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
      const auto value = size.extent(spec_.bindings()[b]);
      const bool odd = value && (*value % 2 == 1 || spec_.limits().even_windows);
      if (odd && *value <= spec_.limits().max_window) fit |= FitMask{1} << b;
    }
    entry.window = spec_.fit_suffices(fit);
    entry.droppable = spec_.fit_suffices(fit_at_most(size, spec_.limits().max_dropped));
    entry.joinable = spec_.fit_suffices(fit_at_most(size, spec_.limits().max_joined));
  }
  entries_.push_back(std::move(entry));
  return place->second;
}

bool SizeSpace::slides(SizeId extent, SizeId window) {
  const auto [place, is_new] = slides_.emplace(pair_key(extent, window), false);
  if (!is_new) return place->second;
  FitMask fit = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    const auto n = size(extent).extent(spec_.bindings()[b]);
    const auto k = size(window).extent(spec_.bindings()[b]);
    if (n && k &&
        static_cast<double>(*n) >= spec_.limits().min_unfold_ratio * static_cast<double>(*k))
      fit |= FitMask{1} << b;
  }
  place->second = is_window(window) && spec_.fit_suffices(fit);
  return place->second;
}

SizeId SizeSpace::product(SizeId a, SizeId b) {
  const auto [place, is_new] = products_.emplace(pair_key(std::min(a, b), std::max(a, b)), kNoSize);
  if (!is_new) return place->second;
  const SizeId id = intern(size(a) * size(b));
  place->second = usable(id) ? id : kNoSize;
  return place->second;
}

const std::vector<SizeId>& SizeSpace::blocks(SizeId n) {
  find_blocks(n);
  return entries_[static_cast<std::size_t>(n)].blocks;
}

const std::vector<SizeId>& SizeSpace::quotients(SizeId n) {
  find_blocks(n);
  return entries_[static_cast<std::size_t>(n)].quotients;
}

// Blocks come from the universe: a variable of budget 0 never enters one.
void SizeSpace::find_blocks(SizeId n) {
  if (entries_[static_cast<std::size_t>(n)].blocks_known) return;
  std::vector<std::pair<SizeId, SizeId>> found;
  for (const SizeId block : universe_) {
    const SizeId quotient = intern(size(n) / size(block));
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
