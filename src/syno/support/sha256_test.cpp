#include "syno/support/sha256.h"

#include <gtest/gtest.h>

namespace syno {
namespace {

// The examples of FIPS 180 and the test of a million letters.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The digest of Python's digests of 0 to 129 letters: every place of the end within a block.
TEST(Sha256, EndsAtAnyPlaceOfABlock) {
  std::string all;
  for (std::size_t n = 0; n < 130; ++n) all += hex(sha256(std::string(n, 'x')));
  EXPECT_EQ(hex(sha256(all)), "199af942eba7fa5d1e16d475169eb24018b14e69339c93d26a9ea6d873b4ace6");
}

}  // namespace
}  // namespace syno
