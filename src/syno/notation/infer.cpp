// Extents that a formula leaves out: an index that reads a dimension of x has its size, one that moves a window of size
// k has the extent k. What is inferred is only proposed: the recogniser checks the whole.
#include <algorithm>

#include "syno/notation/resolve.h"
#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::notation {
namespace {

class Inference {
 public:
  explicit Inference(Meaning& meaning) : meaning_(meaning), forms_(meaning.forms) {}

  void run() {
    // Each round gives a size to a leaf that had none, or is the last.
    do {
      changed_ = false;
      for (const Index& index : meaning_.data) visit(index.form, index.extent);
      for (const Index& index : meaning_.conditions) visit(index.form, index.extent);
      for (const Meaning::Weight& weight : meaning_.weights) {
        for (const Index& index : weight.indices) visit(index.form, std::nullopt);
      }
    } while (changed_);
  }

 private:
  Leaf* open_leaf(const Term& term) {
    const Atom& atom = forms_.atom(term.atom);
    if (atom.kind != AtomKind::kLeaf) return nullptr;
    Leaf& leaf = meaning_.leaves[static_cast<std::size_t>(atom.of)];
    return leaf.extent ? nullptr : &leaf;
  }
  std::optional<Size> leaf_extent(const Term& term) const {
    const Atom& atom = forms_.atom(term.atom);
    if (atom.kind != AtomKind::kLeaf) return std::nullopt;
    return meaning_.leaves[static_cast<std::size_t>(atom.of)].extent;
  }
  void give(Leaf& leaf, const Size& size) {
    if (size.is_one() || leaf.extent) return;
    leaf.extent = size;
    changed_ = true;
  }

  void visit(FormId id, std::optional<Size> extent) {
    // A copy: new forms move old ones.
    const Form form = forms_.at(id);
    if (form.terms.size() == 1 && form.offsets.empty()) {
      const Term& term = form.terms[0];
      if (term.times != 1) return;
      if (extent && !term.size.is_one()) extent = *extent / term.size;
      if (Leaf* leaf = open_leaf(term); leaf != nullptr && extent) give(*leaf, *extent);
    }
    std::vector<Leaf*> open;
    std::vector<const Term*> open_terms;
    for (const Term& term : form.terms) {
      if (Leaf* leaf = open_leaf(term); leaf != nullptr) {
        open.push_back(leaf);
        open_terms.push_back(&term);
      }
    }
    if (form.terms.size() > 1 && !open.empty()) sum(form, open, open_terms, extent);
    for (const Term& term : form.terms) {
      const Atom atom = forms_.atom(term.atom);
      if (atom.kind == AtomKind::kQuotient) {
        const bool whole = form.terms.size() == 1 && form.offsets.empty() && extent;
        visit(atom.of, whole ? std::optional<Size>(*extent * atom.size) : std::nullopt);
      } else if (atom.kind == AtomKind::kRemainder) {
        const std::int64_t turned = forms_.whole(atom.of);
        const FormId inside =
            turned == 0 ? atom.of : forms_.add(atom.of, forms_.integer(turned), -1);
        visit(inside, turned == 0 ? std::nullopt : std::optional<Size>(atom.size));
      }
    }
  }

  void sum(const Form& form, const std::vector<Leaf*>& open, const std::vector<const Term*>& terms,
           const std::optional<Size>& extent) {
    const auto window = std::find_if(form.offsets.begin(), form.offsets.end(), [](const Offset& o) {
      return o.half && o.scale.is_one() && o.times < 0;
    });
    if (window != form.offsets.end() && form.terms.size() == 2) {
      // position + window - k/2: iterators stand before reductions.
      const Term& other = terms[0] == &form.terms[0] ? form.terms[1] : form.terms[0];
      if (open.size() == 1) {
        if (leaf_extent(other) == window->of && !open[0]->reduction) {
          if (extent) give(*open[0], *extent);
        } else {
          give(*open[0], window->of);
        }
      } else {
        give(*open[1], window->of);
        if (extent) give(*open[0], *extent);
      }
      return;
    }
    if (open.size() == 1 && window != form.offsets.end() && open[0]->reduction) {
      // Windows in a window: the one whose index is not known yet.
      std::vector<Size> windows;
      for (const Offset& offset : form.offsets) {
        if (!offset.half || !offset.scale.is_one()) continue;
        constexpr std::int64_t kMostWindows = 8;
        for (std::int64_t i = std::max(offset.times, -kMostWindows); i < 0; ++i)
          windows.push_back(offset.of);
      }
      for (const Term& term : form.terms) {
        const std::optional<Size> known = leaf_extent(term);
        const auto moved =
            known ? std::find(windows.begin(), windows.end(), *known) : windows.end();
        if (moved != windows.end()) windows.erase(moved);
      }
      if (windows.size() == 1) give(*open[0], windows[0]);
      return;
    }
    if (open.size() != 1 || !form.offsets.empty()) return;
    // A digit: what the next larger factor leaves to it.
    const Size& own = terms[0]->size;
    std::optional<Size> next;
    for (const Term& term : form.terms) {
      if (&term == terms[0]) continue;
      const Size quotient = factor(term) / own;
      if (!positive(quotient)) continue;
      if (!next || positive(*next / quotient)) next = quotient;
    }
    if (!next && extent) next = *extent / own;
    if (next) give(*open[0], *next);
  }

  // G*C/g is G*(C/g) beside a digit.
  Size factor(const Term& term) const {
    const Atom& atom = forms_.atom(term.atom);
    if (atom.kind != AtomKind::kQuotient) return term.size;
    const Form& of = forms_.at(atom.of);
    if (of.terms.size() != 1 || of.terms[0].size.is_one()) return term.size;
    return term.size * of.terms[0].size / atom.size;
  }

  bool positive(const Size& size) const {
    for (std::size_t v = 0; v < meaning_.variables->count(); ++v) {
      if (size.power(v) > 0) return true;
    }
    return false;
  }

  Meaning& meaning_;
  Forms& forms_;
  bool changed_ = false;
};

}  // namespace

void infer_extents(Meaning& meaning) {
  Inference(meaning).run();
  for (const Leaf& leaf : meaning.leaves) {
    if (leaf.extent && leaf.extent->is_one()) {
      meaning.source.fail("'" + leaf.name + "' runs up to 1: it is always 0", leaf.begin,
                          "no such index");
    }
    if (leaf.extent) continue;
    meaning.source.fail(
        "how far '" + leaf.name + "' runs is not known", leaf.begin,
        leaf.reduction ? "a size in the sum, such as " + leaf.name + ":C_in"
                       : "the output's shape, or a size behind the index, such as y[" + leaf.name +
                             ":C_out, ...]",
        "the shapes of input and output say it where an index reads a dimension directly");
  }
}

}  // namespace syno::notation
