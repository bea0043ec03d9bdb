#include "syno/plan/names.h"

#include <cctype>
#include <set>
#include <string>

namespace syno {
namespace {

class Letters {
 public:
  std::string take(const std::vector<char>& wishes) {
    for (const char wish : wishes) {
      if (std::isalpha(static_cast<unsigned char>(wish)) &&
          used_.insert(std::string(1, wish)).second)
        return std::string(1, wish);
    }
    const char first = wishes.empty() ? 'a' : static_cast<char>(std::tolower(wishes.front()));
    for (const char base : {'a', 'A'}) {
      for (int i = 0; i < 26; ++i) {
        const std::string letter(1, static_cast<char>(base + (first - 'a' + i) % 26));
        if (used_.insert(letter).second) return letter;
      }
    }
    std::string name;
    do {
      name = "d" + std::to_string(numbered_++);
    } while (!used_.insert(name).second);
    return name;
  }

 private:
  std::set<std::string> used_;
  int numbered_ = 0;
};

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// The letters of the last variable of a size: "s^-1*C_in" wishes for c, i, n.
std::vector<char> letters_of(const std::string& size) {
  const std::size_t star = size.rfind('*');
  std::string factor = star == std::string::npos ? size : size.substr(star + 1);
  factor = factor.substr(0, factor.find('^'));
  std::vector<char> letters;
  for (const char c : factor) {
    if (std::isalpha(static_cast<unsigned char>(c))) letters.push_back(lower(c));
  }
  return letters;
}

DimRole role_of(const Network& network, CoordinateId id) {
  if (network.is_free(id)) return DimRole::kFree;
  if (network.graph().is_iterator(id)) return DimRole::kOutput;
  return network.graph().is_reduction(id) ? DimRole::kReduction : DimRole::kDerived;
}

}  // namespace

std::vector<PlanDim> name_dims(const Network& network) {
  const Graph& graph = network.graph();
  std::vector<PlanDim> dims(graph.coordinates().size());
  Letters letters;
  const auto visit = [&](auto wanted, auto wishes) {
    for (std::size_t id = 0; id < dims.size(); ++id) {
      const auto coordinate = static_cast<CoordinateId>(id);
      if (!wanted(coordinate)) continue;
      const std::string size = graph.extent(coordinate).text(*graph.variables());
      dims[id] = {letters.take(wishes(coordinate, size)), size, network.extent(coordinate),
                  role_of(network, coordinate)};
    }
  };
  const auto by_size = [](CoordinateId, const std::string& size) { return letters_of(size); };
  visit([&](CoordinateId id) { return graph.is_iterator(id); }, by_size);
  visit([&](CoordinateId id) { return graph.is_reduction(id); }, by_size);
  visit([&](CoordinateId id) { return !graph.is_iterator(id) && !graph.is_reduction(id); },
        [&](CoordinateId id, const std::string& size) {
          const Step& producer = *graph.producer(id);
          const std::string& from = dims[static_cast<std::size_t>(producer.in[0])].name;
          std::vector<char> wishes;
          if (keeps_extent(producer.info().makes[0]) && from.size() == 1)
            wishes.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(from[0]))));
          for (const char c : letters_of(size)) wishes.push_back(c);
          return wishes;
        });
  return dims;
}

std::vector<std::vector<int>> placement_keys(const Network& network) {
  const Graph& graph = network.graph();
  const int last = static_cast<int>(graph.output().size());
  std::vector<std::vector<int>> keys(graph.coordinates().size());
  for (std::size_t id = 0; id < keys.size(); ++id) {
    const auto coordinate = static_cast<CoordinateId>(id);
    if (graph.is_iterator(coordinate)) {
      keys[id] = {graph.coordinate(coordinate).index};
      continue;
    }
    const Step& producer = *graph.producer(coordinate);
    const auto key_of = [&](int j) {
      return keys[static_cast<std::size_t>(producer.in[static_cast<std::size_t>(j)])];
    };
    if (producer.is_reduction()) {
      keys[id] = {last, static_cast<int>(id)};
      continue;
    }
    keys[id] = producer.info().joins() ? std::min(key_of(0), key_of(1)) : key_of(0);
    if (producer.info().produces > 1) keys[id].push_back(graph.coordinate(coordinate).index);
  }
  return keys;
}

}  // namespace syno
