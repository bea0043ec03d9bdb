#include "syno/notation/recognise.h"

#include <algorithm>
#include <functional>

#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno::notation {
namespace {

constexpr std::size_t kMaxReadings = 200;
constexpr std::size_t kMaxTerms = 9;
constexpr std::int64_t kMaxWork = 2'000'000;
constexpr std::int64_t kMaxAmount = 1'000'000;

// Calls visit(part, rest) for every way to give some of the offsets to one side and the others to the other.
template <class Visit>
void for_each_share(const std::vector<Offset>& offsets, const Visit& visit) {
  std::vector<Offset> part;
  std::vector<Offset> rest;
  const std::function<void(std::size_t)> go = [&](std::size_t i) {
    if (i == offsets.size()) {
      visit(part, rest);
      return;
    }
    const std::int64_t times = offsets[i].times;
    const std::int64_t sign = times < 0 ? -1 : 1;
    // Windows are few: what is left over stays on one side.
    constexpr std::int64_t kMostUnits = 6;
    for (std::int64_t n = 0; n <= std::min(kMostUnits, times * sign); ++n) {
      Offset mine = offsets[i];
      Offset theirs = offsets[i];
      mine.times = n * sign;
      theirs.times = times - mine.times;
      if (mine.times != 0) part.push_back(mine);
      if (theirs.times != 0) rest.push_back(theirs);
      go(i + 1);
      if (mine.times != 0) part.pop_back();
      if (theirs.times != 0) rest.pop_back();
    }
  };
  go(0);
}

// Calls visit(minor, major) for every way to share terms out between two forms that both have one, and offsets. The
// smallest minor parts come first: B*(b*c) + ... reads as it is mostly written.
template <class Visit>
void for_each_pair(const std::vector<Term>& terms, const std::vector<Offset>& offsets,
                   const Visit& visit) {
  for (std::size_t chosen = 1; chosen + 1 < std::size_t{1} << terms.size(); ++chosen) {
    Form minor;
    Form major;
    for (std::size_t i = 0; i < terms.size(); ++i)
      (((chosen >> i) & 1U) != 0 ? minor : major).terms.push_back(terms[i]);
    for_each_share(offsets, [&](const auto& part, const auto& rest) {
      minor.offsets = part;
      major.offsets = rest;
      visit(minor, major);
    });
  }
}

}  // namespace

std::string hint_of(const Form& form, std::int64_t whole) {
  const bool dilated =
      std::any_of(form.offsets.begin(), form.offsets.end(),
                  [](const auto& offset) { return offset.half && !offset.scale.is_one(); });
  if (dilated) {
    return "the taps of a dilated window are at h+d*a-(d*k)/2 (`syno zoo show dilated`), and "
           "those of a strided "
           "window at s*(h+a-k/2)";
  }
  if (whole == 0) return "";
  return "a shift by " + std::to_string(whole) + " needs mod, because Shift is cyclic: (h+1) mod H";
}

Recogniser::Recogniser(Forms& forms, std::vector<Size> extents,
                       std::map<FormId, std::optional<Size>> bounds, RecogniserOptions options)
    : forms_(forms), extents_(std::move(extents)), bounds_(std::move(bounds)), options_(options) {
  below_.assign(forms_.variables().count(), false);
  const auto divides = [&](const Size& size, bool as_divisor) {
    for (std::size_t v = 0; v < below_.size(); ++v) {
      if (size.power(v) < 0 || (as_divisor && size.power(v) > 0)) below_[v] = true;
    }
  };
  for (const Atom& atom : forms_.atoms()) {
    if (atom.kind == AtomKind::kLeaf) continue;
    blocks_[atom.of].insert(atom.size);
    divides(atom.size, true);
  }
  for (const Size& extent : extents_) divides(extent, false);
  for (const auto& [id, extent] : bounds_) {
    if (extent) divides(*extent, false);
    for (const Term& term : forms_.at(id).terms) divides(term.size, false);
  }
}

bool Recogniser::plausible(const Size& size) const {
  if (options_.any_size) return !size.is_one();
  bool found = false;
  for (std::size_t v = 0; v < below_.size(); ++v) {
    if (size.power(v) < 0 && !below_[v]) return false;
    found = found || size.power(v) > 0;
  }
  return found;
}

// A stride by 1/d is legal for d = 1 only, and then it does nothing: h + d*(a - k/2) does not mean one.
bool Recogniser::can_be_factor(const Size& size) const {
  bool known = true;
  bool above_one = false;
  for (std::size_t v = 0; v < below_.size(); ++v) {
    known = known && (size.power(v) >= 0 || below_[v]);
    above_one = above_one || size.power(v) > 0;
  }
  return plausible(size) && (known || above_one);
}

// kNoNode where a window in it could come back inside.
NodeId Recogniser::make(const Node& node) {
  const auto known = ids_.find(node);
  if (known != ids_.end()) return known->second;
  Made made;
  made.node = node;
  const auto of = [&](NodeId id) -> const Made& { return nodes_[static_cast<std::size_t>(id)]; };
  if (node.a != kNoNode) made.has_window = of(node.a).has_window;
  if (node.b != kNoNode) made.has_window = made.has_window || of(node.b).has_window;
  switch (node.kind) {
    case NodeKind::kLeaf: made.extent = extents_[static_cast<std::size_t>(node.amount)]; break;
    case NodeKind::kSplit:
      if (of(node.b).pending) return kNoNode;
      made.extent = of(node.a).extent * of(node.b).extent;
      made.pending = of(node.a).pending;
      break;
    case NodeKind::kQuotient:
      made.extent = of(node.a).extent / node.size;
      made.pending = of(node.a).pending;
      break;
    case NodeKind::kRemainder:
      // The quotient may carry a window in it: the whole graph says.
      made.extent = node.size;
      break;
    case NodeKind::kShift:
      if (of(node.a).pending) return kNoNode;
      made.extent = of(node.a).extent;
      break;
    case NodeKind::kWindow:
      if (of(node.a).pending || of(node.b).pending) return kNoNode;
      made.extent = of(node.a).extent;
      made.has_window = true;
      made.pending = !options_.every_window_is_bounded;
      break;
    case NodeKind::kStride:
      made.extent = of(node.a).extent * node.size;
      made.pending = of(node.a).pending;
      break;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(made);
  ids_.emplace(node, id);
  return id;
}

void Recogniser::add(std::vector<NodeId>& found, NodeId id) const {
  if (id == kNoNode || found.size() >= kMaxReadings) return;
  if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
}

void Recogniser::spend() {
  if (++spent_ > kMaxWork) throw TooManyReadings{};
  if (spent_ % 64 == 0) check_interrupt();
}

const std::vector<NodeId>& Recogniser::readings(FormId id) {
  const auto place = readings_.find(id);
  if (place != readings_.end()) return place->second;
  // A stride and its inverse ask for each other.
  static const std::vector<NodeId> kNone;
  if (!open_.insert(id).second) return kNone;
  spend();
  std::vector<NodeId> found;
  read(id, found);
  open_.erase(id);
  // What the text says to be inside carries no window further.
  const auto bound = bounds_.find(id);
  if (bound != bounds_.end()) {
    for (const NodeId node : found) {
      Made& made = nodes_[static_cast<std::size_t>(node)];
      if (bound->second && *bound->second != made.extent) continue;
      made.bounded = true;
      made.pending = false;
    }
  }
  return readings_[id] = std::move(found);
}

void Recogniser::read(FormId id, std::vector<NodeId>& found) {
  // A copy: making forms moves them.
  const Form form = forms_.at(id);
  if (form.terms.empty() || form.terms.size() > kMaxTerms) return;
  for (const Term& term : form.terms) {
    if (term.times != 1) return;
  }
  if (form.terms.size() == 1 && form.offsets.empty()) {
    const Term& term = form.terms[0];
    const Atom atom = forms_.atom(term.atom);
    if (!term.size.is_one()) {
      read_stride(form, found);
      const std::vector<NodeId> below = readings(forms_.single(term.atom));
      if (can_be_factor(term.size)) {
        for (const NodeId a : below)
          add(found, make({NodeKind::kStride, a, kNoNode, term.size, 0}));
      }
    } else if (atom.kind == AtomKind::kLeaf) {
      add(found, make({NodeKind::kLeaf, kNoNode, kNoNode, Size(), atom.of}));
    } else if (atom.kind == AtomKind::kQuotient) {
      read_quotient(atom, found);
    } else {
      read_remainder(atom, found);
    }
    return;
  }
  for (const Form& exact : exact_forms(form)) read_sum(exact, found);
  read_sum(form, found);
}

void Recogniser::read_quotient(const Atom& atom, std::vector<NodeId>& found) {
  const std::vector<NodeId> below = readings(atom.of);
  for (const NodeId a : below) {
    if (!plausible(extent(a) / atom.size)) continue;
    add(found, make({NodeKind::kQuotient, a, kNoNode, atom.size, 0}));
    // e div (B*c) is (e div B) div c, where e is divided by B elsewhere.
    for (const Size& block : blocks_[atom.of]) {
      const Size outer = atom.size / block;
      if (!plausible(outer) || !plausible(block)) continue;
      const NodeId inner = make({NodeKind::kQuotient, a, kNoNode, block, 0});
      if (inner != kNoNode) add(found, make({NodeKind::kQuotient, inner, kNoNode, outer, 0}));
    }
  }
}

void Recogniser::read_remainder(const Atom& atom, std::vector<NodeId>& found) {
  // What is left of the whole number once causal windows have taken their 1 is a cyclic shift.
  std::int64_t causal = 0;
  for (const Offset& offset : forms_.at(atom.of).offsets) {
    if (!offset.half && !offset.scale.is_one() && offset.times < 0) causal -= offset.times;
  }
  const std::int64_t whole = forms_.whole(atom.of);
  constexpr std::int64_t kMostCausal = 6;
  for (std::int64_t taken = 0; taken <= std::min(causal, kMostCausal); ++taken) {
    const std::int64_t amount = whole - taken;
    if (amount > kMaxAmount || amount < -kMaxAmount) continue;
    const std::vector<NodeId> below =
        readings(amount == 0 ? atom.of : forms_.add(atom.of, forms_.integer(amount), -1));
    for (const NodeId a : below) {
      const NodeId turned = amount == 0 ? a : make({NodeKind::kShift, a, kNoNode, Size(), amount});
      if (turned == kNoNode) continue;
      if (extent(a) == atom.size) {
        // A remainder that does nothing, unless it brings a window back.
        if (!pending(turned)) add(found, turned);
        continue;
      }
      if (!plausible(extent(a) / atom.size)) continue;
      add(found, make({NodeKind::kRemainder, turned, kNoNode, atom.size, 0}));
      // e mod B is (e mod (B*c)) mod B, where e is divided by B*c elsewhere.
      for (const Size& block : blocks_[atom.of]) {
        if (!plausible(block / atom.size) || !plausible(extent(a) / block)) {
          continue;
        }
        const NodeId inner = make({NodeKind::kRemainder, turned, kNoNode, block, 0});
        if (inner != kNoNode)
          add(found, make({NodeKind::kRemainder, inner, kNoNode, atom.size, 0}));
      }
    }
  }
  // (e div B) mod c is (e mod (B*c)) div B, where e is divided by B*c elsewhere.
  const Form form = forms_.at(atom.of);
  if (form.terms.size() != 1 || !form.offsets.empty() || form.terms[0].times != 1 ||
      !form.terms[0].size.is_one()) {
    return;
  }
  const Atom inside = forms_.atom(form.terms[0].atom);
  if (inside.kind != AtomKind::kQuotient) return;
  const Size whole_block = inside.size * atom.size;
  if (!blocks_[inside.of].contains(whole_block)) return;
  const std::vector<NodeId> below = readings(inside.of);
  for (const NodeId a : below) {
    if (!plausible(extent(a) / whole_block)) continue;
    const NodeId rest = make({NodeKind::kRemainder, a, kNoNode, whole_block, 0});
    if (rest != kNoNode) add(found, make({NodeKind::kQuotient, rest, kNoNode, inside.size, 0}));
  }
}

// a*C/g reads floor((a*C)/g). Beside a digit whose extent divides C/g it is a*(C/g): the quotient of sizes is exact
// wherever that extent is an integer.
std::vector<Form> Recogniser::exact_forms(const Form& form) const {
  std::vector<std::pair<std::size_t, Form>> open;
  constexpr std::size_t kMostOpen = 5;
  for (std::size_t i = 0; i < form.terms.size() && open.size() < kMostOpen; ++i) {
    const Atom& atom = forms_.atom(form.terms[i].atom);
    if (atom.kind != AtomKind::kQuotient || form.terms[i].times != 1) continue;
    // A quotient of a product alone: h/(C/k) is not h*k/C.
    const Form& of = forms_.at(atom.of);
    const bool product = std::none_of(of.terms.begin(), of.terms.end(),
                                      [](const Term& term) { return term.size.is_one(); });
    const std::optional<Form> exact = product ? divided(of, atom.size) : std::nullopt;
    if (!exact) continue;
    open.emplace_back(i, *exact);
  }
  std::vector<Form> found;
  for (std::size_t chosen = 1; chosen < std::size_t{1} << open.size(); ++chosen) {
    Form exact;
    exact.offsets = form.offsets;
    std::size_t next = 0;
    for (std::size_t i = 0; i < form.terms.size(); ++i) {
      const Term& term = form.terms[i];
      const bool is_open = next < open.size() && open[next].first == i;
      if (!is_open || ((chosen >> next) & 1U) == 0) {
        exact.terms.push_back(term);
      } else {
        for (Term inner : open[next].second.terms) {
          inner.size = inner.size * term.size;
          exact.terms.push_back(inner);
        }
        for (Offset inner : open[next].second.offsets) {
          inner.scale = inner.scale * term.size;
          exact.offsets.push_back(inner);
        }
      }
      next += is_open ? 1 : 0;
    }
    found.push_back(forms_.at(forms_.intern(std::move(exact))));
  }
  return found;
}

void Recogniser::read_sum(const Form& form, std::vector<NodeId>& found) {
  if (form.terms.size() > kMaxTerms) return;
  read_stride(form, found);
  read_split(form, found);
  // S*(a + b + ...)
  std::set<Size> factors;
  for (const Term& term : form.terms) factors.insert(term.size);
  for (const Size& factor : factors) {
    if (!can_be_factor(factor)) continue;
    const std::optional<Form> inside = divided(form, factor);
    if (!inside) continue;
    const std::vector<NodeId> below = readings(forms_.intern(*inside));
    for (const NodeId a : below) add(found, make({NodeKind::kStride, a, kNoNode, factor, 0}));
  }
  for (std::size_t i = 0; i < form.offsets.size(); ++i) {
    const Offset offset = form.offsets[i];
    if (offset.times >= 0) continue;
    Form rest = form;
    ++rest.offsets[i].times;
    if (offset.half && offset.scale.is_one()) read_window(form, rest, offset.of, false, found);
    if (!offset.half && !offset.scale.is_one()) {
      rest.offsets.push_back({Size(), false, Size(), -1});
      read_window(form, rest, offset.scale, true, found);
    }
  }
}

// S*e where e is read somewhere else: both have to be made of one coordinate.
void Recogniser::read_stride(const Form& form, std::vector<NodeId>& found) {
  for (const auto& [id, extent] : bounds_) {
    const Form other = forms_.at(id);
    if (other.terms.size() != form.terms.size()) continue;
    const Size factor = form.terms[0].size / other.terms[0].size;
    if (!can_be_factor(factor)) continue;
    const std::optional<Form> inside = divided(form, factor);
    if (!inside || forms_.intern(*inside) != id) continue;
    const std::vector<NodeId> below = readings(id);
    for (const NodeId a : below) add(found, make({NodeKind::kStride, a, kNoNode, factor, 0}));
  }
}

// The form divided by a size, where every part can be.
std::optional<Form> Recogniser::divided(const Form& form, const Size& by) const {
  Form result = form;
  const auto divide = [&](Size& size) {
    size = size / by;
    return size.is_one() || plausible(size);
  };
  for (Term& term : result.terms) {
    if (!divide(term.size)) return std::nullopt;
  }
  for (Offset& offset : result.offsets) {
    if (!divide(offset.scale)) return std::nullopt;
  }
  return result;
}

void Recogniser::read_split(const Form& form, std::vector<NodeId>& found) {
  for_each_pair(form.terms, form.offsets, [&](const Form& minor, const Form& major) {
    spend();
    const std::vector<NodeId> minors = readings(forms_.intern(minor));
    for (const NodeId b : minors) {
      const std::optional<Form> above = divided(major, extent(b));
      if (!above) continue;
      const std::vector<NodeId> majors = readings(forms_.intern(*above));
      for (const NodeId a : majors) add(found, make({NodeKind::kSplit, a, b, Size(), 0}));
    }
  });
}

void Recogniser::read_window(const Form& form, const Form& rest, const Size& window, bool causal,
                             std::vector<NodeId>& found) {
  if (form.terms.size() < 2) return;
  const Form summed = forms_.at(forms_.intern(rest));
  for_each_pair(form.terms, summed.offsets, [&](const Form& minor, const Form& major) {
    spend();
    const std::vector<NodeId> minors = readings(forms_.intern(minor));
    for (const NodeId b : minors) {
      if (extent(b) != window) continue;
      const std::vector<NodeId> majors = readings(forms_.intern(major));
      for (const NodeId a : majors)
        add(found, make({NodeKind::kWindow, a, b, Size(), causal ? 1 : 0}));
    }
  });
}

}  // namespace syno::notation
