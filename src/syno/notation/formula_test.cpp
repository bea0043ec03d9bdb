#include "syno/notation/formula.h"

#include <cctype>
#include <gtest/gtest.h>
#include <map>

#include "syno/access/interpreter.h"
#include "syno/access/random_graph.h"
#include "syno/access/zoo_texts_test.h"

namespace syno {
namespace {

using Exact = Tensor<std::int64_t>;
using Names = std::map<std::string, std::int64_t>;

// Computes what a formula says, by the grammar in formula.h and nothing else.
class Evaluator {
 public:
  Evaluator(std::string text, Names variables, const Exact& x, const std::vector<Exact>& weights)
      : text_(std::move(text)), names_(std::move(variables)), x_(x), weights_(weights) {}

  Exact run(const std::vector<std::int64_t>& output) {
    expect("y[");
    std::vector<std::string> iterators;
    while (!accept("]")) {
      iterators.push_back(name());
      accept(",");
    }
    expect(" = ");
    std::vector<std::pair<std::string, std::int64_t>> sums;
    if (accept("sum(")) {
      do {
        const std::string index = name();
        expect(":");
        sums.emplace_back(index, modulo());
      } while (accept(", "));
      expect(") ");
    }
    const std::size_t body = at_;
    EXPECT_EQ(iterators.size(), output.size());
    Exact y = zeros<std::int64_t>(output);
    std::vector<std::int64_t> index(output.size(), 0);
    for (std::int64_t& element : y.data) {
      for (std::size_t d = 0; d < index.size(); ++d) names_[iterators[d]] = index[d];
      element = sum(sums, 0, body);
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == output[d];) index[d] = 0;
    }
    return y;
  }

 private:
  std::int64_t sum(const std::vector<std::pair<std::string, std::int64_t>>& sums, std::size_t from,
                   std::size_t body) {
    if (from == sums.size()) {
      at_ = body;
      return term();
    }
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < sums[from].second; ++i) {
      names_[sums[from].first] = i;
      total += sum(sums, from + 1, body);
    }
    return total;
  }

  std::int64_t term() {
    expect("x");
    std::int64_t product = element(x_);
    std::size_t number = 0;
    while (accept(" * w" + std::to_string(number))) product *= element(weights_.at(number++));
    EXPECT_EQ(number, weights_.size());
    if (accept(" where ")) {
      do {
        expect("0 <= ");
        const std::int64_t value = modulo();
        expect(" < ");
        const std::int64_t extent = modulo();
        if (value < 0 || value >= extent) product = 0;
      } while (accept(", "));
    }
    EXPECT_EQ(at_, text_.size()) << text_.substr(at_);
    return product;
  }

  std::int64_t element(const Exact& tensor) {
    expect("[");
    std::int64_t flat = 0;
    bool inside = true;
    std::size_t d = 0;
    while (!accept("]")) {
      const std::int64_t i = modulo();
      inside = inside && 0 <= i && i < tensor.shape.at(d);
      flat = flat * tensor.shape.at(d++) + i;
      accept(",");
    }
    EXPECT_EQ(d, tensor.shape.size());
    return inside ? tensor.data[static_cast<std::size_t>(flat)] : 0;
  }

  std::int64_t modulo() {
    std::int64_t value = sum_of();
    while (accept(" mod ")) value = floor_modulo(value, atom());
    return value;
  }
  std::int64_t sum_of() {
    std::int64_t value = product();
    while (true) {
      if (accept("+")) {
        value += product();
      } else if (accept("-")) {
        value -= product();
      } else {
        return value;
      }
    }
  }
  std::int64_t product() {
    std::int64_t value = atom();
    while (true) {
      if (peek() == '*') {
        accept("*");
        value *= atom();
      } else if (accept("/")) {
        value = floor_divide(value, atom());
      } else {
        return value;
      }
    }
  }
  std::int64_t atom() {
    if (accept("(")) {
      const std::int64_t value = modulo();
      expect(")");
      return value;
    }
    std::int64_t value = 0;
    if (std::isdigit(peek()) != 0) {
      value = number();
    } else {
      const std::string index = name();
      EXPECT_TRUE(names_.contains(index)) << "unknown name " << index << " in " << text_;
      value = names_[index];
    }
    if (!accept("^")) return value;
    std::int64_t power = 1;
    for (std::int64_t i = number(); i > 0; --i) power *= value;
    return power;
  }

  int peek() const { return at_ < text_.size() ? text_[at_] : 0; }
  bool accept(const std::string& token) {
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(const std::string& token) {
    ASSERT_TRUE(accept(token)) << "expected " << token << " at " << text_.substr(at_);
  }
  std::string name() {
    const std::size_t begin = at_;
    while (std::isalnum(peek()) != 0 || peek() == '_') ++at_;
    EXPECT_GT(at_, begin) << "expected a name at " << text_.substr(at_);
    return text_.substr(begin, at_ - begin);
  }
  std::int64_t number() { return std::stoll(name()); }

  std::string text_;
  Names names_;
  const Exact& x_;
  const std::vector<Exact>& weights_;
  std::size_t at_ = 0;
};

void expect_true(const Operator& op, const Binding& binding, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + formula(op) + "\n" + op.text() +
               binding.text());
  const Values values = binding.resolve(*op.variables());
  const OperatorShapes shapes = operator_shapes(op, values);
  const Exact x = random_integers(shapes.input, seed);
  std::vector<Exact> weights;
  for (const auto& shape : shapes.weights)
    weights.push_back(random_integers(shape, seed + 1 + weights.size()));
  Names variables;
  for (std::size_t v = 0; v < values.size(); ++v) variables[op.variables()->name(v)] = values[v];
  ASSERT_EQ(Evaluator(formula(op), variables, x, weights).run(shapes.output),
            interpret(op, values, x, weights));
}

TEST(Formula, SaysWhatTheOperatorComputes) {
  RandomOptions options;
  options.max_terms = 800;
  options.causal_windows = 0.2;
  options.wide_windows = 0.3;
  options.scalar_input = true;
  int masked = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const RandomOperator drawn = random_operator(seed, options);
    masked += formula(drawn.op).find(" where ") != std::string::npos;
    expect_true(drawn.op, drawn.binding, seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(masked, 100);
}

TEST(Formula, OfTheZooSaysWhatItComputes) {
  for (const ZooText& zoo : kZooTexts)
    expect_true(Operator::parse(zoo.text), Binding::parse(zoo.binding), 1);
}

// Weights stand in the operator's canonical order.
TEST(Formula, ReadsAsOneWouldWriteIt) {
  const auto of = [](const ZooText& zoo) { return formula(Operator::parse(zoo.text)); };
  EXPECT_EQ(of(kConv2d).substr(0, of(kConv2d).find(" *")),
            "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2]");
  EXPECT_EQ(of(kConv1x1), "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]");
  EXPECT_EQ(of(kLinear), "y[n,t,o] = sum(i:C_in) x[n,t,i] * w0[o,i]");
  EXPECT_EQ(of(kDepthwise), "y[n,c,h,w] = sum(a:k, b:k) x[n,c,h+a-k/2,w+b-k/2] * w0[c,a,b]");
  EXPECT_EQ(of(kGrouped).substr(0, of(kGrouped).find(" *")),
            "y[n,o,h,w] = sum(i:C_in/g, a:k, b:k) "
            "x[n,o/(C_out/g)*C_in/g+i,h+a-k/2,w+b-k/2]");
  EXPECT_EQ(of(kPixelShuffle), "y[n,o,h,w] = x[n,(o*s+(h mod s))*s+(w mod s),h/s,w/s]");
  EXPECT_EQ(of(kDilated).substr(0, of(kDilated).find(" *")),
            "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a*k-k^2/2,w+b*k-k^2/2]");
  EXPECT_EQ(of(kShiftConv), "y[n,o,h,w] = sum(i:C_in) x[n,i,(h+1) mod H,(w+1) mod W] * w0[o,i]");
  EXPECT_EQ(of(kPooledConv).substr(0, of(kPooledConv).find(" *")),
            "y[n,o,h,w] = sum(i:C_in, a:k, b:s, c:k, d:s) "
            "x[n,i,(h/s+a-k/2)*s+b,(w/s+c-k/2)*s+d]");
  EXPECT_EQ(of(kOperator1).substr(0, of(kOperator1).find(" *")),
            "y[n,o,h,w] = sum(a:g, i:C_in/g, b:k, c:k, j:C_out/(g*s)) "
            "x[n,a*C_in/g+i,h+b-k/2,w+c-k/2]");
}

TEST(Formula, NotesAWindowThatCouldComeBackInside) {
  const std::string rotated = formula(Operator::parse(kOperator2.text));
  EXPECT_NE(rotated.find("(h+b-k/2+1) mod H"), std::string::npos) << rotated;
  EXPECT_EQ(rotated.substr(rotated.find(" where ")), " where 0 <= h+b-k/2 < H");
  const std::string nested = formula(Operator::parse(kStackedConv.text));
  EXPECT_EQ(nested.substr(nested.find(" where ")), " where 0 <= w+c-k/2 < H");
  EXPECT_EQ(
      formula(Operator::parse("syno operator 1\nout [T: causal]\nin [T: causal]\nreduce k -> r0\n"
                              "unfold o0 r0 causal -> c0\nmatch c0\n")),
      "y[t] = sum(a:k) x[t+a-k+1]");
  EXPECT_EQ(formula(Operator::parse(
                "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 -> c0\n"
                "shift c0 -1 -> c1\nmatch c1\n")),
            "y[h] = sum(a:k) x[(h+a-k/2-1) mod H] where 0 <= h+a-k/2 < H");
}

TEST(Formula, NamesAreNeverVariablesAndNeverTwice) {
  EXPECT_EQ(formula(Operator::parse("syno operator 1\nout [h, h, a, H, H]\nin [h, a, H, k]\n"
                                    "reduce k -> r0\nexpand o0\ncontract o3:drop\n"
                                    "match o1 o2 o4 r0\n")),
            "y[w,u,v,p,q] = sum(b:k) x[u,v,q,b] * w0[p]");
}

}  // namespace
}  // namespace syno
