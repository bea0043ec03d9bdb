// Bytes moved and alive against a replay that knows nothing of strides: every tensor is the list of the places of its
// elements, and a stage is a view when the definition of one holds.
#include "syno/plan/memory.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using Index = std::vector<std::int64_t>;

// A place in memory: a buffer and an element of it.
using Place = std::pair<int, std::int64_t>;

std::int64_t product(const Index& shape) {
  std::int64_t all = 1;
  for (const std::int64_t extent : shape) all *= extent;
  return all;
}

void for_each_index(const Index& shape, const std::function<void(const Index&)>& visit) {
  Index index(shape.size(), 0);
  for (std::int64_t n = 0; n < product(shape); ++n) {
    visit(index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

std::int64_t row_major(const Index& shape, const Index& index) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + index[d];
  return place;
}

class BruteForce {
 public:
  explicit BruteForce(const Plan& plan) : plan_(plan), places_(plan.tensors.size()) {
    make(plan.input);
    for (const int weight : plan.weights) make(weight);
    for (const Stage& stage : plan.fold_stages) run(stage);
    const int before = buffers_;
    moved_ = 0;
    std::vector<std::set<int>> read;
    std::vector<int> made;
    for (const Stage& stage : plan.stages) {
      const int known = buffers_;
      run(stage);
      made.push_back(buffers_ > known ? known : -1);
      read.emplace_back();
      if (made.back() < 0) continue;
      read.back() = buffers_of(stage.input);
      if (stage.weight >= 0) read.back().merge(buffers_of(stage.weight));
    }
    // Whatever a stage reads, or the caller gets, is alive from when it is made.
    std::map<int, std::pair<std::size_t, std::size_t>> alive;
    const std::size_t count = std::max<std::size_t>(plan.stages.size(), 1);
    for (const int b : buffers_of(plan.input)) alive[b] = {0, count};
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i] >= 0) alive[made[i]] = {i, i};
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      for (const int b : read[i]) {
        if (b < before) {
          alive[b] = {0, count};
        } else {
          alive[b].second = std::max(alive[b].second, i);
        }
      }
    }
    for (const int b : buffers_of(plan.output)) alive[b].second = count;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t bytes = 0;
      for (const auto& [b, time] : alive) {
        if (time.first <= i && i <= time.second) bytes += 4 * sizes_[static_cast<std::size_t>(b)];
      }
      peak_ = std::max(peak_, bytes);
    }
  }
  std::int64_t moved() const { return 4 * moved_; }
  std::int64_t peak() const { return peak_; }
  int copied_merges() const { return copied_merges_; }

 private:
  std::vector<Place>& places(int tensor) { return places_[static_cast<std::size_t>(tensor)]; }
  std::set<int> buffers_of(int tensor) {
    std::set<int> found;
    for (const Place& place : places(tensor)) found.insert(place.first);
    return found;
  }
  void make(int tensor) {
    const std::int64_t size = product(plan_.shape(tensor));
    for (std::int64_t n = 0; n < size; ++n) places(tensor).emplace_back(buffers_, n);
    sizes_.push_back(size);
    ++buffers_;
  }

  // The elements of the result as elements of the input, where the stage only re-indexes.
  std::optional<std::vector<Place>> reindexed(const Stage& stage) {
    const Index in = plan_.shape(stage.input);
    const Index out = plan_.shape(stage.output);
    const auto axis = static_cast<std::size_t>(std::max(stage.axis, 0));
    std::vector<Place> result;
    bool is_view = true;
    for_each_index(out, [&](const Index& index) {
      Index from = index;
      switch (stage.kind) {
        case StageKind::kPermute:
          for (std::size_t d = 0; d < index.size(); ++d)
            from[static_cast<std::size_t>(stage.order[d])] = index[d];
          break;
        case StageKind::kSplit:
          from[axis] = index[axis] * out[axis + 1] + index[axis + 1];
          from.erase(from.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
          break;
        case StageKind::kMerge:
          from[axis] = index[axis] / in[axis + 1];
          from.insert(from.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                      index[axis] % in[axis + 1]);
          break;
        case StageKind::kSlice: from[axis] = index[axis] * stage.amount; break;
        case StageKind::kExpand:
          from.erase(from.begin() + static_cast<std::ptrdiff_t>(axis));
          break;
        default: is_view = false; return;
      }
      result.push_back(places(stage.input)[static_cast<std::size_t>(row_major(in, from))]);
    });
    if (!is_view) return std::nullopt;
    // A view steps through memory evenly along each dimension, from wherever the others are.
    for (std::size_t d = 0; d < out.size(); ++d) {
      std::optional<std::int64_t> step;
      for_each_index(out, [&](const Index& index) {
        if (index[d] + 1 >= out[d]) return;
        Index next = index;
        ++next[d];
        const std::int64_t now = result[static_cast<std::size_t>(row_major(out, next))].second -
                                 result[static_cast<std::size_t>(row_major(out, index))].second;
        if (step && *step != now) is_view = false;
        step = now;
      });
    }
    if (is_view) return result;
    EXPECT_EQ(stage.kind, StageKind::kMerge);
    ++copied_merges_;
    return std::nullopt;
  }

  std::int64_t different(int tensor) {
    const std::vector<Place>& all = places(tensor);
    return static_cast<std::int64_t>(std::set<Place>(all.begin(), all.end()).size());
  }

  void run(const Stage& stage) {
    if (auto view = reindexed(stage)) {
      places(stage.output) = std::move(*view);
      return;
    }
    moved_ += different(stage.input) + product(plan_.shape(stage.output));
    if (stage.weight >= 0) moved_ += different(stage.weight);
    make(stage.output);
  }

  const Plan& plan_;
  std::vector<std::vector<Place>> places_;
  std::vector<std::int64_t> sizes_;
  int buffers_ = 0;
  std::int64_t moved_ = 0;
  std::int64_t peak_ = 0;
  int copied_merges_ = 0;
};

TEST(Memory, IsWhatAReplayOfTheStagesMovesAndHolds) {
  RandomOptions options;
  options.max_terms = 4000;
  options.max_elements = 4000;
  options.mix.expand = 0.8;
  options.mix.merge = 1.5;
  int copied_merges = 0;
  int folded = 0;
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const RandomOperator random = random_operator(seed, options);
    for (const bool fold : {false, true}) {
      for (const Plan& plan : plans(random.op, random.values, {.limit = 3, .fold_weights = fold})) {
        BruteForce brute(plan);
        ASSERT_EQ(plan.bytes_moved, brute.moved()) << "seed " << seed << "\n" << plan.text();
        ASSERT_EQ(plan.peak_bytes, brute.peak()) << "seed " << seed << "\n" << plan.text();
        copied_merges += brute.copied_merges();
        folded += !plan.fold_stages.empty();
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 2000U);
  EXPECT_GT(copied_merges, 100);
  EXPECT_GT(folded, 100);
}

TEST(Memory, OfALinearLayerIsWhatItsFormulaSays) {
  const Operator op = Operator::parse(kLinear.text);
  const Plan linear =
      plan(op, Binding::parse("N=1, T=20, C_in=30, C_out=50").resolve(*op.variables()));
  const std::int64_t bytes = 4 * (20 * 30 + 30 * 50 + 20 * 50);
  EXPECT_EQ(linear.bytes_moved, bytes);
  EXPECT_EQ(linear.peak_bytes, bytes);
}

TEST(Memory, ATensorThatNobodyReadsAnyMoreIsNotAlive) {
  // Each copy reads the one before it, and x stays.
  const Operator op = Operator::parse(kPixelShuffle.text);
  const Plan shuffle = plan(op, Binding::parse("N=2, C=3, H=5, W=7, s=2").resolve(*op.variables()));
  // Merges of dimensions that are not neighbours in memory copy; splits and permutes do not.
  const std::vector<bool> views = views_among_stages(shuffle);
  std::int64_t copies = std::count(views.begin(), views.end(), false);
  EXPECT_GE(copies, 1);
  EXPECT_EQ(shuffle.bytes_moved, copies * 2 * 4 * (2 * 3 * 4 * 5 * 7));
  EXPECT_EQ(shuffle.peak_bytes, (copies > 1 ? 3 : 2) * 4 * (2 * 3 * 4 * 5 * 7));
}

TEST(Memory, OverflowIsAnErrorAndNeverAWrongNumber) {
  const Operator op =
      Operator::parse("syno operator 1\nout [A, B]\nin [A, B]\nshift o0 1 -> c0\nmatch c0 o1\n");
  EXPECT_THROW(plan(op, Binding::parse("A=3000000000, B=1000000000").resolve(*op.variables())),
               UserError);
}

}  // namespace
}  // namespace syno
