#include "syno/notation/syntax.h"

#include <array>
#include <charconv>
#include <limits>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno::notation {
namespace {

// Formulas are written by hand or printed: beyond this a text is damaged, and recursion stays shallow.
constexpr std::size_t kMaxTokens = 2000;
constexpr int kMaxDepth = 60;
constexpr std::int64_t kMaxNumber = 1'000'000'000;

enum class TokenKind : std::uint8_t { kName, kNumber, kSign, kBreak, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  std::int64_t number = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Reader {
 public:
  explicit Reader(std::string_view text) {
    result_.text = text;
    tokenize();
  }

  FormulaText read() {
    while (skip_breaks()) {
      statement();
      if (peek().kind != TokenKind::kBreak && peek().kind != TokenKind::kEnd)
        fail("expected the end of the statement, got " + found());
    }
    if (result_.stages.empty()) {
      result_.fail("a formula says what y is, and this text does not", 0,
                   "y[...] = sum(...) x[...] * w0[...]");
    }
    return std::move(result_);
  }

 private:
  // Tokens. A line ends a statement unless something is open or the next line goes on with a sign.

  void tokenize() {
    const std::string& text = result_.text;
    int open = 0;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c == '#') {
        while (at < text.size() && text[at] != '\n') ++at;
        continue;
      }
      if (c == '\n' || c == ';') {
        if (open == 0 && (c == ';' || !goes_on(at))) add(TokenKind::kBreak, at, 1);
        ++at;
        continue;
      }
      if (c == ' ' || c == '\t' || c == '\r') {
        ++at;
        continue;
      }
      if (Cursor::is_name_start(c)) {
        std::size_t end = at;
        while (end < text.size() && Cursor::is_name_rest(text[end])) ++end;
        add(TokenKind::kName, at, end - at);
        at = end;
        continue;
      }
      if (c >= '0' && c <= '9') {
        at = number(at);
        continue;
      }
      static constexpr std::array<std::string_view, 4> kLong{"<=", "//", "**", "=="};
      std::size_t length = 0;
      for (const std::string_view sign : kLong) {
        if (text.compare(at, 2, sign) == 0) length = 2;
      }
      if (length == 0 && std::string_view("[](),:=<*/%+-^").find(c) != std::string_view::npos)
        length = 1;
      if (length == 0) {
        std::size_t end = at + 1;
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
        result_.fail("'" + text.substr(at, end - at) + "' has no meaning in a formula", at);
      }
      open += (c == '[' || c == '(') - (c == ']' || c == ')');
      add(TokenKind::kSign, at, length);
      at += length;
    }
    add(TokenKind::kEnd, text.size(), 0);
  }

  bool goes_on(std::size_t line_end) const {
    const std::string& text = result_.text;
    if (!tokens_.empty() && tokens_.back().kind == TokenKind::kSign && tokens_.back().text != "]" &&
        tokens_.back().text != ")") {
      return true;
    }
    std::size_t next = line_end;
    while (next < text.size() &&
           (text[next] == '\n' || text[next] == ' ' || text[next] == '\t' || text[next] == '\r')) {
      ++next;
    }
    if (next >= text.size()) return false;
    const std::string_view rest = std::string_view(text).substr(next);
    return std::string_view("*+-/%,)]<=^").find(rest[0]) != std::string_view::npos ||
           rest.starts_with("where ") || rest.starts_with("mod ");
  }

  std::size_t number(std::size_t at) {
    const std::string& text = result_.text;
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    std::int64_t value = 0;
    std::from_chars(text.data() + at, text.data() + end, value);
    if (end - at > 10 || value > kMaxNumber)
      result_.fail("the number is too large", at, "at most " + std::to_string(kMaxNumber));
    add(TokenKind::kNumber, at, end - at);
    tokens_.back().number = value;
    return end;
  }

  void add(TokenKind kind, std::size_t at, std::size_t length) {
    if (tokens_.size() > kMaxTokens) result_.fail("the formula is too long", at);
    tokens_.push_back({kind, result_.text.substr(at, length), 0, at, at + length});
  }

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool is(std::string_view text, std::size_t ahead = 0) const {
    const Token& token = peek(ahead);
    return (token.kind == TokenKind::kSign || token.kind == TokenKind::kName) && token.text == text;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++next_;
    return true;
  }
  std::string found() const {
    if (peek().kind == TokenKind::kEnd) return "the end";
    return peek().kind == TokenKind::kBreak ? "the end of the statement" : "'" + peek().text + "'";
  }
  [[noreturn]] void fail(const std::string& message) const { result_.fail(message, peek().begin); }
  void expect(std::string_view text, const std::string& why) {
    if (!accept(text)) fail("expected '" + std::string(text) + "' " + why + ", got " + found());
  }
  bool skip_breaks() {
    while (peek().kind == TokenKind::kBreak) ++next_;
    return peek().kind != TokenKind::kEnd;
  }

  // Statements.

  void statement() {
    if (peek().kind != TokenKind::kName) fail("expected a name, got " + found());
    if (!is("[", 1)) {
      definition();
      return;
    }
    Stage stage;
    stage.target = access(true);
    if (is("+") || is("-") || is("*")) fail("expected '=', got " + found());
    expect("=", "behind what a stage makes");
    if (is("sum") && is("(", 1)) sums(stage);
    product(stage);
    if (accept("where")) {
      do condition(stage);
      while (accept(","));
    }
    result_.stages.push_back(std::move(stage));
  }

  void definition() {
    Definition made;
    made.begin = peek().begin;
    made.name = tokens_[next_++].text;
    expect("=", "or '[' behind '" + made.name + "'");
    made.value = expression();
    result_.definitions.push_back(std::move(made));
  }

  void sums(Stage& stage) {
    next_ += 2;
    do {
      Declared made;
      made.begin = peek().begin;
      if (peek().kind != TokenKind::kName)
        fail("expected the name of an index that is summed over, got " + found());
      made.name = tokens_[next_++].text;
      if (accept(":") || accept("<")) made.size = expression();
      stage.sums.push_back(std::move(made));
    } while (accept(","));
    expect(")", "at the end of the sum");
    skip_breaks();
    accept("*");
  }

  void product(Stage& stage) {
    do {
      if (peek().kind == TokenKind::kName && is("(", 1)) {
        const std::string name = peek().text;
        result_.fail("'" + name +
                         "(...)' is outside the eight primitives: an operator is linear in x "
                         "and in each weight",
                     peek().begin, "tensors that are multiplied, such as x[h] * w0[h]",
                     name == "sum" ? "write a sum inside a product as a separate stage" : "");
      }
      if (peek().kind != TokenKind::kName || !is("[", 1)) {
        result_.fail("a factor is x, a weight or an earlier stage", peek().begin,
                     "such as x[n,i]      got: " + found(),
                     peek().kind == TokenKind::kNumber
                         ? "a constant factor only scales: leave it out, or put it into a weight"
                         : "");
      }
      stage.factors.push_back(access(false));
    } while (accept("*"));
    if (is("+") || is("-")) {
      result_.fail(
          "a sum of two terms is outside the eight primitives: each operator is one product",
          peek().begin, "'*', 'where' or the end",
          "sum over an index instead, or use one operator for each term");
    }
    if (is("/")) {
      result_.fail("a constant factor only scales: an operator has none", peek().begin,
                   "'*', 'where' or the end", "leave it out, or put it into a weight");
    }
  }

  void condition(Stage& stage) {
    // `c < m` declares; `u = ...` defines; `0 <= u < H` is a condition.
    if (peek().kind == TokenKind::kName && is("<", 1)) {
      Declared made{tokens_[next_].text, nullptr, peek().begin};
      next_ += 2;
      made.size = expression();
      result_.declared.push_back(std::move(made));
      return;
    }
    if (peek().kind == TokenKind::kName && is("=", 1)) {
      definition();
      return;
    }
    if (!(peek().kind == TokenKind::kNumber && peek().number == 0))
      fail("expected a condition such as 0 <= h+a-k/2 < H, got " + found());
    ++next_;
    expect("<=", "in a condition such as 0 <= h+a-k/2 < H");
    Condition made;
    made.value = expression();
    expect("<", "in a condition such as 0 <= h+a-k/2 < H");
    made.extent = expression();
    stage.conditions.push_back(std::move(made));
  }

  Access access(bool sizes) {
    Access made;
    made.begin = peek().begin;
    made.tensor = tokens_[next_].text;
    next_ += 2;
    if (!is("]")) {
      do {
        made.indices.push_back(expression());
        made.sizes.push_back(sizes && accept(":") ? expression() : nullptr);
      } while (accept(","));
    }
    expect("]", "at the end of the indices of " + made.tensor);
    made.end = tokens_[next_ - 1].end;
    return made;
  }

  // Expressions: mod below + and -, then * and /, then ^, all from left to right.

  AstPtr expression() {
    if (++depth_ > kMaxDepth) fail("the formula is nested too deeply");
    AstPtr made = sum_of();
    while (accept("mod")) made = two(AstKind::kModulo, made, sum_of());
    --depth_;
    return made;
  }
  AstPtr sum_of() {
    AstPtr made;
    if (is("-")) {
      const std::size_t begin = peek().begin;
      ++next_;
      Ast negated{AstKind::kNegate, 0, "", multiplied(), nullptr, begin, 0};
      negated.end = negated.a->end;
      made = std::make_shared<const Ast>(std::move(negated));
    } else {
      made = multiplied();
    }
    while (true) {
      if (accept("+")) {
        made = two(AstKind::kAdd, made, multiplied());
      } else if (accept("-")) {
        made = two(AstKind::kSubtract, made, multiplied());
      } else {
        return made;
      }
    }
  }
  AstPtr multiplied() {
    AstPtr made = power();
    while (true) {
      // A number right before a name is a factor: 32j.
      const bool adjacent = made->kind == AstKind::kNumber && peek().kind == TokenKind::kName &&
                            !is("mod") && peek().begin == made->end;
      if (adjacent || accept("*")) {
        made = two(AstKind::kMultiply, made, power());
      } else if (accept("//") || accept("/")) {
        made = two(AstKind::kDivide, made, power());
      } else if (accept("%")) {
        made = two(AstKind::kModulo, made, power());
      } else {
        return made;
      }
    }
  }
  AstPtr power() {
    AstPtr made = atom();
    while (accept("^") || accept("**")) {
      const bool negative = accept("-");
      if (peek().kind != TokenKind::kNumber) fail("expected an integer as a power, got " + found());
      Ast number{AstKind::kNumber,
                 negative ? -peek().number : peek().number,
                 "",
                 nullptr,
                 nullptr,
                 peek().begin,
                 peek().end};
      ++next_;
      made = two(AstKind::kPower, made, std::make_shared<const Ast>(std::move(number)));
    }
    return made;
  }
  AstPtr atom() {
    const Token& token = peek();
    if (accept("(")) {
      AstPtr made = expression();
      expect(")", "behind an expression in parentheses");
      // With its parentheses, so that messages quote whole expressions.
      Ast wrapped = *made;
      wrapped.begin = token.begin;
      wrapped.end = tokens_[next_ - 1].end;
      return std::make_shared<const Ast>(std::move(wrapped));
    }
    if (token.kind == TokenKind::kNumber) {
      ++next_;
      return std::make_shared<const Ast>(
          Ast{AstKind::kNumber, token.number, "", nullptr, nullptr, token.begin, token.end});
    }
    if (token.kind != TokenKind::kName) fail("expected an index or a size, got " + found());
    if (is("[", 1) || is("(", 1)) {
      result_.fail("'" + token.text + (is("[", 1) ? "[...]" : "(...)") +
                       "' cannot stand inside an index: indices are affine, with / and mod",
                   token.begin);
    }
    ++next_;
    return std::make_shared<const Ast>(
        Ast{AstKind::kName, 0, token.text, nullptr, nullptr, token.begin, token.end});
  }
  static AstPtr two(AstKind kind, AstPtr a, AstPtr b) {
    Ast made{kind, 0, "", std::move(a), std::move(b), 0, 0};
    made.begin = made.a->begin;
    made.end = made.b->end;
    return std::make_shared<const Ast>(std::move(made));
  }

  FormulaText result_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

void FormulaText::fail(const std::string& message, std::size_t at, const std::string& expected,
                       const std::string& hint) const {
  std::size_t line = 1;
  std::size_t start = 0;
  for (std::size_t i = 0; i < at && i < text.size(); ++i) {
    if (text[i] != '\n') continue;
    ++line;
    start = i + 1;
  }
  const std::size_t end = std::min(text.find('\n', start), text.size());
  const std::string where = text.substr(start, end - start);
  Complaint complaint(message);
  complaint.where("formula \"" + where + "\"" +
                  (text.find('\n') == std::string::npos ? "" : ", line " + std::to_string(line)) +
                  ", column " + std::to_string(std::min(at, text.size()) - start + 1));
  std::string more;
  if (!expected.empty()) more += "\n  expected: " + expected;
  if (!hint.empty()) more += "\n  hint: " + hint;
  throw UserError(complaint.error().what() + more);
}

FormulaText read_formula(std::string_view text) {
  return Reader(text).read();
}

}  // namespace syno::notation
