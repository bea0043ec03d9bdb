#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kMerge) return false;
  for (std::size_t v = 0; v < c.spec.variables()->count(); ++v) {
    if (c.spec.variable(v).primary && c.step.size.power(v) != 0) return true;
  }
  return false;
}

}  // namespace

const Rule kPrimaryBlock{
    .id = "R18",
    .name = "primary-block",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      A Merge is left out if its block contains a primary variable. Blocks consist of coefficients.
Why:       A block as large as a whole dimension mixes positions and channels without locality. All published
           operators have small blocks.
When:      Always; an unordered iterator can be merged in the other order (R5b).
Soundness: restriction. It excludes, for example, operators that join positions and channels into one index and cut
           this index at C_in.
Status:    unreleased, new after 0.1
Example:   split(r, h) -> c; merge(c, C_in) is left out; merge(c, s) is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kSmallBlocks},
    .version = "3e2c461d",
};

}  // namespace syno
