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
        R"(What:      the block of a Merge is made of coefficients, never of primary variables
Why:       a block as large as a whole dimension mixes positions and channels without any locality; all published
           operators have small blocks
When:      always; an unordered iterator can be merged the other way round (R5b)
Soundness: restriction: excludes, for example, splitting positions and channels into one index and cutting it at C_in
Status:    unreleased, new after 0.1
Example:   split(r, h) -> c; merge(c, C_in) is left out; merge(c, s) is not)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = nullptr,
    .guarantees = {Guarantee::kSmallBlocks},
};

}  // namespace syno
