// Golden files: texts in git that tests compare with what the code makes now.
#pragma once

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "syno/support/source_dir_test.h"

namespace syno {

/// Compares the file at `path`, in the source folder, with `text`; with SYNO_UPDATE_GOLDEN it is written first.
/// `cure`: what a failure says.
inline void expect_golden(const std::string& path, const std::string& text,
                          const std::string& cure) {
  const std::string place = std::string(kSourceDir) + "/" + path;
  if (std::getenv("SYNO_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(place);
    file << text;
    ASSERT_TRUE(file.flush()) << "cannot write " << place;
  }
  std::ifstream file(place);
  std::stringstream known;
  known << file.rdbuf();
  EXPECT_EQ(known.str(), text) << cure;
}

}  // namespace syno
