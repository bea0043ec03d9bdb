#include "syno/emit/cpp/network_text.h"

namespace syno::cpp {

std::string_view network_weights() {
  return R"source(
// --- weights -------------------------------------------------------------------------------------

namespace {

// The checksum of words, one after the other.
struct Checksum {
  std::uint64_t sum = 0, weighted = 0, place = 0;

  void add(const float* words, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t word;
      std::memcpy(&word, &words[i], sizeof word);
      sum += word;
      weighted += std::uint64_t{word} * (2 * (place + i + 1) + 1);
    }
    place += count;
  }
  std::uint64_t value() const { return weighted ^ (sum << 1); }
};

// What a file of weights holds, in order.
struct Weights {
  std::FILE* const file;
  Checksum checksum;

  bool read_float32(float* to, std::size_t count) {
    if (std::fread(to, sizeof(float), count, file) != count) return false;
    checksum.add(to, count);
    return true;
  }
  // Smaller elements are read to where they become floats, from the last one on.
  bool read_bfloat16(float* to, std::size_t count) {
    if (!read_float32(to, (count + 1) / 2)) return false;
    for (std::size_t i = count; i-- > 0;) {
      std::uint16_t half;
      std::memcpy(&half, reinterpret_cast<const char*>(to) + 2 * i, sizeof half);
      const std::uint32_t word = std::uint32_t{half} << 16;
      std::memcpy(&to[i], &word, sizeof word);
    }
    return true;
  }
  bool read_int8(float* to, std::size_t count) {
    if (!read_float32(to, (count + 3) / 4)) return false;
    for (std::size_t i = count; i-- > 0;) {
      std::int8_t integer;
      std::memcpy(&integer, reinterpret_cast<const char*>(to) + i, sizeof integer);
      to[i] = integer;
    }
    return true;
  }
};

constexpr long whole_lines(long count) { return (count + 15) / 16 * 16; }  // floats, up to the end of a cache line

// Floats of each layer as its kernel reads them, and 0 behind them all: there is no array of none.
const long* packed_sizes() {
  static const long sizes[] = {@PACKED_SIZES@};
  return sizes;
}

long packed_floats() {
  long floats = 0;
  for (long layer = 0; layer < @LAYERS@; ++layer) floats += whole_lines(packed_sizes()[layer]);
  return floats;
}

// Says where the weights of each layer begin.
void place_layers(Network& net) {
  float* at = net.weights;
  for (long layer = 0; layer < @LAYERS@; ++layer) {
    net.packed[layer] = at;
    at += whole_lines(packed_sizes()[layer]);
  }
}

constexpr long kConstants = whole_lines(@CONSTANTS@);

// What makes a difference to packed weights, beside the network: the code of kernels, and what they were compiled for.
constexpr std::uint64_t kBuild = @BUILD@
#if defined(__AVX2__)
  ^ 0x1
#endif
#if defined(__AVX512F__)
  ^ 0x2
#endif
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  ^ 0x4
#endif
#if defined(__AVX512BF16__)
  ^ 0x8
#endif
#if defined(__AVX512VNNI__)
  ^ 0x10
#endif
#if defined(__AVXVNNI__)
  ^ 0x20
#endif
#if defined(__AVX__)
  ^ 0x40
#endif
#if defined(__ARM_NEON)
  ^ 0x80
#endif
#if defined(__ARM_FEATURE_DOTPROD)
  ^ 0x100
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
  ^ 0x200
#endif
;

struct Head {
  char magic[8];
  std::uint64_t fingerprint, words, checksum;
};

// A file of weights begins so, as it was written with the code.
struct WeightsHead : Head {
  char rest[32];
};
// And so as a library writes it: constants and packed weights follow, as they lie in memory.
struct PackedHead : Head {
  std::uint64_t build;
  char rest[24];
};
static_assert(sizeof(WeightsHead) == 64 && sizeof(PackedHead) == 64);

struct File {
  std::FILE* const file;
  const std::string name;
  explicit File(const char* path) : file(std::fopen(path, "rb")), name(std::string("'") + path + "'") {}
  ~File() {
    if (file) std::fclose(file);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

bool damaged(const File& from) { return failed(from.name + " is damaged: its checksum differs"); }
bool cut(const File& from) { return failed(from.name + " has another length than its head says"); }

void drop_weights(Network& net) {
#if defined(SYNO_MAPS)
  if (net.mapped) {
    munmap(net.mapped, net.mapped_bytes);
    return;
  }
#endif
  std::free(net.constants);
  std::free(net.weights);
}

bool allocate(Network& net) {
  net.constants = floats(kConstants);
  net.weights = floats(packed_floats());
  if (!net.constants || !net.weights) return failed("there is not enough memory for the weights");
  place_layers(net);
  return true;
}

// The checksum of constants and packed weights.
std::uint64_t checksum_of(const Network& net) {
  Checksum checksum;
  checksum.add(net.constants, kConstants);
  checksum.add(net.weights, static_cast<std::size_t>(packed_floats()));
  return checksum.value();
}

// Behind its head, which has been read.
bool read_packed(Network& net, const File& from, const PackedHead& head) {
  const std::size_t constants = kConstants, packed = static_cast<std::size_t>(packed_floats());
  if (head.fingerprint != @FINGERPRINT@) return failed(from.name + " has the weights of another network");
  if (head.build != kBuild || head.words != constants + packed)
    return failed(from.name + " was written by a library of other code or for another processor");
  std::fseek(from.file, 0, SEEK_END);
  const std::size_t bytes = sizeof head + (constants + packed) * sizeof(float);
  if (std::ftell(from.file) != static_cast<long>(bytes)) return cut(from);
#if defined(SYNO_MAPS)
  void* const block = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fileno(from.file), 0);
  if (block == MAP_FAILED) return failed("cannot map " + from.name + " into memory");
  net.mapped = block;
  net.mapped_bytes = bytes;
  net.constants = static_cast<float*>(block) + sizeof head / sizeof(float);
  net.weights = net.constants + constants;
  place_layers(net);
#else
  std::fseek(from.file, sizeof head, SEEK_SET);
  if (!allocate(net)) return false;
  if (std::fread(net.constants, sizeof(float), constants, from.file) != constants ||
      std::fread(net.weights, sizeof(float), packed, from.file) != packed)
    return cut(from);
#endif
  return checksum_of(net) == head.checksum || damaged(from);
}

bool write_packed(const Network& net, const char* path) {
  const std::size_t constants = kConstants, packed = static_cast<std::size_t>(packed_floats());
  PackedHead head{};
  std::memcpy(head.magic, "SYNOPACK", 8);
  head.fingerprint = @FINGERPRINT@;
  head.words = constants + packed;
  head.checksum = checksum_of(net);
  head.build = kBuild;
  std::FILE* const file = std::fopen(path, "wb");
  bool wrote = file && std::fwrite(&head, sizeof head, 1, file) == 1 &&
               std::fwrite(net.constants, sizeof(float), constants, file) == constants &&
               std::fwrite(net.weights, sizeof(float), packed, file) == packed;
  if (file && std::fclose(file) != 0) wrote = false;
  return wrote || failed(std::string("cannot write '") + path + "': " + std::strerror(errno));
}

bool read_weights(Network& net, const char* path) {
  if (!path) return failed("the name of the file of weights is null");
  const File given(path);
  if (!given.file) return failed("cannot open the file of weights " + given.name);
  WeightsHead head;
  const bool is_whole = std::fread(&head, sizeof head, 1, given.file) == 1;
  if (is_whole && std::memcmp(head.magic, "SYNOPACK", 8) == 0) {
    PackedHead packed;
    std::memcpy(&packed, &head, sizeof packed);
    return read_packed(net, given, packed);
  }
  if (!is_whole || std::memcmp(head.magic, "SYNONET1", 8) != 0)
    return failed(given.name + " is no file of weights of a network");
  if (head.fingerprint != @FINGERPRINT@ || head.words != @WORDS@)
    return failed(given.name + " has the weights of another network");
  Weights from{given.file, {}};
  if (!allocate(net)) return false;
  // Layer after layer, of which the largest has so many.
  const std::unique_ptr<float[]> values(new float[@LARGEST@]);
  if (!from.read_float32(net.constants, @CONSTANTS@)) return cut(given);
  for (long i = @CONSTANTS@; i < kConstants; ++i) net.constants[i] = 0;
@PACKING@
  for (long layer = 0; layer < @LAYERS@; ++layer)
    for (long i = packed_sizes()[layer]; i < whole_lines(packed_sizes()[layer]); ++i) net.packed[layer][i] = 0;
  if (std::fgetc(given.file) != EOF) return cut(given);
  return from.checksum.value() == head.checksum || damaged(given);
}

}  // namespace
)source";
}

}  // namespace syno::cpp
