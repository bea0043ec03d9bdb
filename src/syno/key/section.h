// An operator in sections: groups of coordinates that no step joins with the rest.
//
//     [o0] -> input 0      [o1, r0, ...] -> input 1, weight 0      [o2, r1, c0] -> input 2, weight 0
//
// The points of an operator are the product of the points of its sections, and every index, every
// condition and every dimension of a weight is a function on one of them; only weights hold
// dimensions of several. So the normal form of an operator is that of its sections side by side, and
// the same few sections come back in thousands of operators of one specification: a window over a
// height, a group of channels.
//
// Coordinates and steps of a section are numbered in an order of its own, which depends neither on
// the order of the operator's steps nor on what else the operator has.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "syno/graph/operator.h"

namespace syno::key {

struct Section {
  /// A dimension of the operator: output dimensions are slots from 0, input dimensions follow.
  struct Dim {
    int slot = 0;
    bool unordered = false;
    int coordinate = 0;
    /// Of an image (orbit.h): the dimension counts down.
    bool mirrored = false;
  };
  /// A step that makes coordinates.
  struct Unit {
    Primitive primitive{};
    std::array<int, 2> in{-1, -1};
    std::array<int, 2> out{-1, -1};
    int amount = 0;
    bool causal = false;
    /// Its number in the graph.
    int step = 0;
  };

  /// What tells an element of an unordered dimension or of a weight: coordinates, as few and as early
  /// as possible.
  struct Told {
    int slot = 0;
    std::vector<int> coordinates;
  };

  /// The graph's coordinates, by their number here: iterators first.
  std::vector<CoordinateId> coordinates;
  std::vector<Dim> outputs;
  std::vector<Dim> inputs;
  std::vector<Unit> units;
  /// Unordered dimensions by slot, then weights in an order of content.
  std::vector<Told> partitions;
  std::size_t weights = 0;
};

inline constexpr int kWeightSlot = -1;

/// The sections of an operator. One object serves many operators and keeps its memory.
class Sections {
 public:
  /// Reads an operator, whose graph outlives what is asked next. `in_one`: all of it is one section. `mirrored`: slots of
  /// dimensions that are reversed, as bits; those of unordered dimensions do not matter.
  void read(const Graph& graph, const Shape& input, std::span<const CoordinateId> match,
            bool in_one, std::uint64_t mirrored = 0);

  std::size_t count() const { return ranges_.size(); }
  /// A hash of section `s`; `sizes` stands for the size of each output dimension and each step.
  struct SizeWords {
    std::span<const std::uint64_t> outputs;
    std::span<const std::uint64_t> steps;
  };
  Hash128 hash(std::size_t s, const SizeWords& sizes, Hasher start = Hasher("section")) const;
  Section section(std::size_t s) const;
  /// The numbers in the graph of the weights of section `s`.
  std::span<const int> weights(std::size_t s) const;

 private:
  // Where the lists of one section begin and end.
  struct Range {
    std::size_t units = 0;
    std::size_t units_end = 0;
    std::size_t weights = 0;
    std::size_t weights_end = 0;
  };
  // What a weight holds in a section: numbers_[first..end).
  struct Holding {
    int section = 0;
    int weight = 0;
    std::size_t first = 0;
    std::size_t end = 0;
  };

  bool is_mirrored(std::size_t slot) const { return (mirrored_ >> slot & 1) != 0; }
  int find(int coordinate);
  void unite(CoordinateId a, CoordinateId b);
  void find_sections(bool in_one);
  void order_reductions();
  std::vector<std::uint64_t> use_colours() const;
  void order_steps();
  void number(CoordinateId id);
  void list_units();
  void list_weights();
  std::span<const int> held(const Holding& holding) const;

  const Graph* graph_ = nullptr;
  const Shape* input_ = nullptr;
  std::span<const CoordinateId> match_;
  std::uint64_t mirrored_ = 0;
  std::vector<int> parent_;
  // By coordinate: its section, its place in the order of all, its number in the section.
  std::vector<int> section_of_;
  std::vector<int> rank_;
  std::vector<int> number_;
  int ranks_ = 0;
  std::vector<int> section_sizes_;
  std::vector<Range> ranges_;
  std::vector<int> reductions_;
  std::vector<int> waiting_;
  // Steps in order; the same by section.
  std::vector<int> order_;
  std::vector<int> units_;
  std::vector<Holding> holdings_;
  std::vector<int> holding_weights_;
  std::vector<int> numbers_;
};

}  // namespace syno::key
