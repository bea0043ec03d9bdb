// Computes what a formula says, by the grammar in formula.h and nothing else: the witness for what is printed and read.
#pragma once

#include <cctype>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "syno/interp/tensor.h"
#include "syno/support/checked.h"

namespace syno {

using Exact = Tensor<std::int64_t>;
/// Values by name.
using Named = std::map<std::string, std::int64_t>;

class Evaluator {
 public:
  Evaluator(std::string text, Named variables, const Exact& x, const std::vector<Exact>& weights)
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
  Named names_;
  const Exact& x_;
  const std::vector<Exact>& weights_;
  std::size_t at_ = 0;
};

/// Two shifts, one after the other, of an index, of a window, and of a remainder by the size of the shifts.
inline std::vector<std::string> shifted_twice(int first, int second) {
  const std::string by[] = {" " + std::to_string(first) + " -> ",
                            " " + std::to_string(second) + " -> "};
  const std::string head = "syno operator 1\n";
  return {head + "out [H]\nin [H]\nshift o0" + by[0] + "c0\nshift c0" + by[1] + "c1\nmatch c1\n",
          head + "out [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 -> c0\nshift c0" + by[0] +
              "c1\nshift c1" + by[1] + "c2\nmatch c2\n",
          head + "out [H]\nin [s^-1*H, s]\nmerge o0 s -> c0 c1\nshift c1" + by[0] + "c2\nshift c2" +
              by[1] + "c3\nmatch c0 c3\n"};
}

}  // namespace syno
