#include "syno/space/space.h"

#include <algorithm>
#include <istream>
#include <ostream>

#include "syno/support/error.h"
#include "syno/support/text.h"

namespace syno {
namespace {

constexpr std::string_view kMagic = "syno space 1\n";
// No enumerated space is larger; a damaged length must not fill the memory.
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 32;

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(out) {}
  void bytes(std::string_view text) {
    out_.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const char c : text) sum_.add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  // Seven bits a byte, the lowest first.
  void number(std::uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7F) | 0x80);
    text += static_cast<char>(value);
    bytes(text);
  }
  // Small negative numbers stay short.
  void difference(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes(value);
  }
  void hash(const Hash128& value) {
    for (const std::uint64_t lane : {value.high, value.low}) {
      std::string text;
      for (int i = 0; i < 8; ++i) text += static_cast<char>(lane >> (8 * i) & 0xFF);
      bytes(text);
    }
  }
  Hash128 sum() const { return sum_.finish(); }

 private:
  std::ostream& out_;
  Hasher sum_{"space file"};
};

class Reader {
 public:
  explicit Reader(std::istream& in) : in_(in) {}
  std::string bytes(std::size_t count) {
    std::string text(count, '\0');
    in_.read(text.data(), static_cast<std::streamsize>(count));
    if (static_cast<std::size_t>(in_.gcount()) != count) damaged("it ends too early");
    for (const char c : text) sum_.add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return text;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    damaged("a number has no end");
  }
  std::int64_t difference() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::size_t count(std::string_view what, std::uint64_t most = kMostEntries) {
    const std::uint64_t value = number();
    if (value > most) damaged("there are too many " + std::string(what));
    return static_cast<std::size_t>(value);
  }
  std::string text() { return bytes(count("characters", 1 << 20)); }
  Hash128 hash() {
    const std::string text = bytes(16);
    std::array<std::uint64_t, 2> lanes{};
    for (std::size_t i = 0; i < 16; ++i)
      lanes[i / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i]))
                      << (8 * (i % 8));
    return {lanes[0], lanes[1]};
  }
  Hash128 sum() const { return sum_.finish(); }
  [[noreturn]] static void damaged(const std::string& why) {
    throw Complaint("the file of an enumeration is damaged: " + why)
        .hint("run the enumeration again; it writes a new file")
        .error();
  }

 private:
  std::istream& in_;
  Hasher sum_{"space file"};
};

[[noreturn]] void other(const std::string& what, const std::string& expected,
                        const std::string& found) {
  throw Complaint("the file of an enumeration belongs to another " + what)
      .expected(expected, found)
      .hint("name another file, or run the enumeration again")
      .error();
}

// Graphs stand level by level, each behind its parent on the level before.
void check_levels(const Space& space) {
  const auto& levels = space.levels;
  const std::size_t count = space.nodes.size();
  const bool whole = count == 0 ? levels.empty()
                                : levels.size() >= 2 && levels[0] == 0 && levels[1] == 1 &&
                                      levels.back() == count &&
                                      std::is_sorted(levels.begin(), levels.end());
  if (!whole) Reader::damaged("its levels do not contain its graphs");
  for (std::size_t level = 1; level + 1 < levels.size(); ++level) {
    for (std::uint32_t node = levels[level]; node < levels[level + 1]; ++node) {
      const std::uint32_t parent = space.nodes[node].parent;
      if (parent < levels[level - 1] || parent >= levels[level])
        Reader::damaged("a graph does not follow its parent");
    }
  }
}

}  // namespace

Step step_of_move(const Graph& graph, const SpaceMove& move) {
  const PrimitiveInfo& info = primitive_info(move.primitive);
  Step step;
  step.primitive = move.primitive;
  if (info.consumes > 0) step.in[0] = graph.frontier()[move.a];
  if (info.consumes > 1) step.in[1] = graph.frontier()[move.b];
  step.size = move.size;
  step.amount = move.amount;
  step.causal = move.causal;
  if (info.argument != Argument::kRoles) return step;
  for (std::size_t place = 0; place < graph.frontier().size(); ++place) {
    const auto role = static_cast<unsigned>(move.roles >> (2 * place) & 3U);
    if (role == kNoRole) continue;
    step.dims.push_back({graph.frontier()[place], role == kKeepRole   ? WeightRole::kKeep
                                                  : role == kDropRole ? WeightRole::kDrop
                                                                      : WeightRole::kJoin});
  }
  return step;
}

Space::Space(const Specification& spec) : spec_key(spec.key().hex()), spec_text(spec.text()) {}

Graph Space::graph(const Specification& spec, std::uint32_t node) const {
  std::vector<std::uint32_t> chain;
  for (std::uint32_t at = node; at != 0; at = nodes[at].parent) chain.push_back(nodes[at].move);
  Graph graph(spec.variables(), spec.output());
  for (std::size_t i = chain.size(); i-- > 0;) graph.apply(step_of_move(graph, moves[chain[i]]));
  return graph;
}

Operator Space::op(const Specification& spec, std::size_t index) const {
  const SpaceOperator& found = operators.at(index);
  const Graph built = graph(spec, found.node);
  const auto matches = matchings(built, spec.input(), spec.passed_through());
  ensure(found.matching < matches.size(), "Space::op: the matching does not exist");
  return Operator(built, spec.input(), matches[found.matching]);
}

int Space::depth(std::uint32_t node) const {
  const auto place = std::upper_bound(levels.begin(), levels.end(), node);
  return static_cast<int>(place - levels.begin()) - 1;
}

std::vector<std::int64_t> Space::operators_by_depth() const {
  std::vector<std::int64_t> counts(levels.size());
  for (const SpaceOperator& found : operators)
    ++counts[static_cast<std::size_t>(depth(found.node))];
  return counts;
}

std::vector<std::int64_t> Space::graphs_by_depth() const {
  std::vector<std::int64_t> counts(levels.size());
  for (const std::uint32_t node : graphs) ++counts[static_cast<std::size_t>(depth(node))];
  return counts;
}

std::map<std::string, std::int64_t> Space::operators_by_primitives() const {
  std::map<std::array<std::uint8_t, kPrimitiveCount>, std::int64_t> counts;
  for (const SpaceOperator& found : operators) {
    std::array<std::uint8_t, kPrimitiveCount> used{};
    for (std::uint32_t at = found.node; at != 0; at = nodes[at].parent)
      ++used[static_cast<std::size_t>(moves[nodes[at].move].primitive)];
    ++counts[used];
  }
  std::map<std::string, std::int64_t> named;
  for (const auto& [used, count] : counts) {
    std::vector<std::string> parts;
    for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
      if (used[p] > 0)
        parts.push_back(std::to_string(used[p]) + " " +
                        std::string(primitive_info(static_cast<Primitive>(p)).name));
    }
    named[join(parts, ", ")] = count;
  }
  return named;
}

std::vector<std::uint32_t> Space::operators_below() const {
  std::vector<std::uint32_t> counts(nodes.size());
  for (const SpaceOperator& found : operators) ++counts[found.node];
  // Children stand after their parents.
  for (std::size_t node = nodes.size(); node-- > 1;) counts[nodes[node].parent] += counts[node];
  return counts;
}

Hash128 Space::signature() const {
  Hasher hasher("space");
  hasher.add(fingerprint_sum).add(depth_limit).add(structures);
  hasher.add(static_cast<std::int64_t>(graphs.size()));
  return hasher.finish();
}

void Space::save(std::ostream& out) const {
  Writer write(out);
  write.bytes(kMagic);
  write.text(spec_key);
  write.text(spec_text);
  write.text(rules);
  write.difference(depth_limit);
  write.difference(complete_depth);
  write.number(exhausted);
  write.difference(structures);
  write.difference(visited);
  write.hash(fingerprint_sum);
  write.number(moves.size());
  for (const SpaceMove& move : moves) {
    write.number(static_cast<std::uint64_t>(move.primitive));
    write.number(move.a);
    write.number(move.b);
    write.number(move.causal);
    write.difference(move.amount);
    write.number(move.roles);
    for (std::size_t v = 0; v < kMaxVariables; ++v) write.difference(move.size.power(v));
  }
  write.number(levels.size());
  for (const std::uint32_t level : levels) write.number(level);
  write.number(nodes.size());
  std::uint32_t parent = 0;
  for (const SpaceNode& node : nodes) {
    write.difference(static_cast<std::int64_t>(node.parent) - parent);
    write.number(node.move);
    parent = node.parent;
  }
  write.number(graphs.size());
  std::uint32_t before = 0;
  for (const std::uint32_t node : graphs) {
    write.number(node - before);
    before = node;
  }
  write.number(operators.size());
  for (const SpaceOperator& found : operators) {
    write.number(found.node);
    write.number(found.matching);
    write.hash(found.key);
  }
  write.number(rejections.size());
  for (const auto& [reason, count] : rejections) {
    write.text(reason);
    write.difference(count);
  }
  write.hash(write.sum());
  if (!out) throw UserError("cannot write the file of an enumeration: is the disk full?");
}

Space Space::load(std::istream& in, const Specification& spec, const std::string& rules) {
  Reader read(in);
  std::string magic(kMagic.size(), '\0');
  in.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (magic != kMagic) {
    throw Complaint("this is not a file of an enumeration")
        .expected("a file that 'syno enumerate --output' wrote",
                  in.gcount() == 0 ? "an empty file" : "something else")
        .error();
  }
  in.seekg(0);
  read.bytes(kMagic.size());
  Space space;
  space.spec_key = read.text();
  space.spec_text = read.text();
  space.rules = read.text();
  if (space.spec_key != spec.key().hex()) {
    if (space.spec_text != spec.text()) other("specification", spec.text(), space.spec_text);
    other("specification of the same shapes (other budgets, bindings or limits)", spec.key().hex(),
          space.spec_key);
  }
  if (space.rules != rules) other("set of rules", rules, space.rules);
  space.depth_limit = read.difference();
  space.complete_depth = read.difference();
  space.exhausted = read.number() != 0;
  space.structures = read.difference();
  space.visited = read.difference();
  space.fingerprint_sum = read.hash();
  const std::size_t move_count = read.count("moves");
  for (std::size_t i = 0; i < move_count; ++i) {
    SpaceMove move;
    move.primitive = static_cast<Primitive>(read.count("primitives", kPrimitiveCount - 1));
    move.a = static_cast<std::uint8_t>(read.count("places", kMaxFrontier));
    move.b = static_cast<std::uint8_t>(read.count("places", kMaxFrontier));
    move.causal = read.number() != 0;
    move.amount = static_cast<std::int16_t>(read.difference());
    move.roles = read.number();
    for (std::size_t v = 0; v < kMaxVariables; ++v) {
      const std::int64_t power = read.difference();
      if (power < -100 || power > 100) Reader::damaged("a size is out of range");
      if (power != 0) move.size = move.size * Size::variable(v, static_cast<int>(power));
    }
    space.moves.push_back(move);
  }
  const std::size_t level_count = read.count("levels", 4096);
  for (std::size_t i = 0; i < level_count; ++i)
    space.levels.push_back(static_cast<std::uint32_t>(read.count("graphs")));
  const std::size_t node_count = read.count("graphs");
  std::int64_t parent = 0;
  for (std::size_t i = 0; i < node_count; ++i) {
    parent += read.difference();
    const std::size_t move = read.count("moves");
    if (parent < 0 || (i > 0 && parent >= static_cast<std::int64_t>(i)) ||
        (i > 0 && move >= move_count))
      Reader::damaged("a graph has no parent");
    space.nodes.push_back({static_cast<std::uint32_t>(parent), static_cast<std::uint32_t>(move)});
  }
  std::uint64_t before = 0;
  check_levels(space);
  const std::size_t graph_count = read.count("graphs");
  for (std::size_t i = 0; i < graph_count; ++i) {
    before += read.number();
    if (before >= node_count) Reader::damaged("a complete graph is missing");
    space.graphs.push_back(static_cast<std::uint32_t>(before));
  }
  const std::size_t operator_count = read.count("operators");
  for (std::size_t i = 0; i < operator_count; ++i) {
    SpaceOperator found;
    found.node = static_cast<std::uint32_t>(read.count("graphs"));
    found.matching = static_cast<std::uint32_t>(read.count("matchings", 1 << 20));
    found.key = read.hash();
    if (found.node >= node_count) Reader::damaged("an operator is missing");
    space.operators.push_back(found);
  }
  const std::size_t reason_count = read.count("reasons", 4096);
  for (std::size_t i = 0; i < reason_count; ++i) {
    std::string reason = read.text();
    space.rejections[std::move(reason)] = read.difference();
  }
  const Hash128 sum = read.sum();
  if (read.hash() != sum) Reader::damaged("its check sum is wrong");
  if (in.peek() != std::istream::traits_type::eof()) Reader::damaged("something follows its end");
  return space;
}

}  // namespace syno
