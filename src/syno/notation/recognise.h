// Which coordinates an index can be: every way in which the eight primitives can make a value from iterators and
// reductions, found from the normal form of the index.
//
//     B*a + b, extent(b) = B      Split        e div B, e mod B     Merge
//     (e + d) mod extent(e)       Shift        a + b - K/2          Unfold, extent(b) = K
//     S*a                         Stride
//
// A way is correct or is not offered: the value of a node is the index wherever no window is outside, and where one is,
// the text gives zero as well. That needs care for windows. A window is *bounded* when the text says that its value is
// inside, because it reads x or a weight at it or has a condition; otherwise it must be carried by what is made of it
// (as the major part of a Split, the quotient of a Merge, or a Stride) to something that is bounded.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "syno/notation/index_form.h"

namespace syno::notation {

using NodeId = int;
inline constexpr NodeId kNoNode = -1;

enum class NodeKind : std::uint8_t {
  kLeaf,
  kSplit,
  kQuotient,
  kRemainder,
  kShift,
  kWindow,
  kStride
};

struct Node {
  NodeKind kind = NodeKind::kLeaf;
  NodeId a = kNoNode;
  NodeId b = kNoNode;
  /// Quotient, remainder: the block. Stride: the factor.
  Size size;
  /// Leaf: its number. Shift: the amount. Window: whether it is causal.
  std::int64_t amount = 0;
  friend auto operator<=>(const Node&, const Node&) = default;
};

/// What to write instead of an index that has no reading; `whole` is the number that it adds. Empty without advice.
std::string hint_of(const Form& form, std::int64_t whole);

/// Thrown when a text has so many readings that they are not gone through.
struct TooManyReadings {};

struct RecogniserOptions {
  /// As if the text bounded every window: to find out whether that is what is wrong.
  bool every_window_is_bounded = false;
  /// Takes every size for possible, such as 1/k, which is one for k = 1.
  bool any_size = false;
};

class Recogniser {
 public:
  /// extents: of the leaves. bounds: forms that the text says are inside 0 .. size-1; without a size they are inside the
  /// extent of whatever they are.
  Recogniser(Forms& forms, std::vector<Size> extents, std::map<FormId, std::optional<Size>> bounds,
             RecogniserOptions options = {});

  /// What `id` can be, the most literal reading first.
  const std::vector<NodeId>& readings(FormId id);

  const Node& at(NodeId id) const { return nodes_[static_cast<std::size_t>(id)].node; }
  const Size& extent(NodeId id) const { return nodes_[static_cast<std::size_t>(id)].extent; }
  /// Whether a window in it is neither bounded nor carried to something that is, up to here.
  bool pending(NodeId id) const { return nodes_[static_cast<std::size_t>(id)].pending; }
  /// Whether the text says that its value is inside its extent.
  bool bounded(NodeId id) const {
    return options_.every_window_is_bounded || nodes_[static_cast<std::size_t>(id)].bounded;
  }
  bool has_window(NodeId id) const { return nodes_[static_cast<std::size_t>(id)].has_window; }

 private:
  struct Made {
    Node node;
    Size extent;
    bool pending = false;
    bool bounded = false;
    bool has_window = false;
  };

  /// Whether it may be the size of something: above 1 for some values, and no variable in a denominator that nothing
  /// in the text divides by.
  bool plausible(const Size& size) const;
  /// Whether it may be what a Stride multiplies by.
  bool can_be_factor(const Size& size) const;
  NodeId make(const Node& node);
  void add(std::vector<NodeId>& found, NodeId id) const;
  void spend();
  void read(FormId id, std::vector<NodeId>& found);
  void read_quotient(const Atom& atom, std::vector<NodeId>& found);
  void read_remainder(const Atom& atom, std::vector<NodeId>& found);
  void read_sum(const Form& form, std::vector<NodeId>& found);
  void read_stride(const Form& form, std::vector<NodeId>& found);
  void read_split(const Form& form, std::vector<NodeId>& found);
  void read_window(const Form& form, const Form& rest, const Size& window, bool causal,
                   std::vector<NodeId>& found);
  std::vector<Form> exact_forms(const Form& form) const;
  std::optional<Form> divided(const Form& form, const Size& by) const;

  Forms& forms_;
  std::vector<Size> extents_;
  std::map<FormId, std::optional<Size>> bounds_;
  RecogniserOptions options_;
  /// Blocks by which each form is divided somewhere.
  std::map<FormId, std::set<Size>> blocks_;
  /// By variable: whether the text has it in a denominator or a divisor.
  std::vector<bool> below_;
  std::vector<Made> nodes_;
  std::map<Node, NodeId> ids_;
  std::map<FormId, std::vector<NodeId>> readings_;
  /// Forms that are being read.
  std::set<FormId> open_;
  std::int64_t spent_ = 0;
};

}  // namespace syno::notation
