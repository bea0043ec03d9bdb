// The operators of the paper's tables stay in the space of its preset with every rule on, the approximate ones too. The
// tables give primitives and weight shapes; where they leave a choice, the form here is the one that the names of the
// dimensions suggest.
#include <gtest/gtest.h>

#include "syno/explain/why_not.h"
#include "syno/space/path.h"
#include "syno/spec/paper_operators_test.h"
#include "syno/spec/presets.h"

namespace syno {
namespace {

struct Published {
  const char* name;
  const char* text;
};

constexpr Published kPublished[] = {
    {"conv2d", kConv2d},
    {"Operator 1 (07889)", kOperator1},
    {"Operator 2 (07754)", R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce g -> G
reduce k_1 -> a
reduce k_1 -> q
reduce g^-1*s^-1*C_out -> c
reduce g^-1*C_in -> r
contract o1:drop G:keep a:keep c:keep
unfold o2 a -> h
shift o3 1 -> v
split G r -> i
contract i:keep q:keep c:join
unfold v q -> w
match o0 i h w
)"},
    {"07720", R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce s -> q
reduce C_in -> i
reduce k_1 -> a
split o2 q -> t
shift t 1 -> z
shift o3 1 -> v
merge z s -> u p
contract i:keep a:keep p:drop o1:drop
unfold v a -> w
match o0 i u w
)"},
    {"07747", R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce s -> q
reduce C_in -> i
reduce k_1 -> a
split o2 q -> t
shift t 1 -> z
merge z s -> u p
shift o3 1 -> v
contract o1:keep p:drop
contract o1:join i:keep a:keep
unfold v a -> w
match o0 i u w
)"},
    {"07750", R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce s -> q
reduce s^-1*C_in -> c
reduce k_1 -> a
contract q:keep c:keep a:keep o1:drop
split o2 q -> t
shift t 1 -> z
shift o3 1 -> v
merge z s -> u p
unfold v a -> w
split c p -> i
match o0 i u w
)"},
    {"07795", kOperator07795},
    {"07821", R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce s -> q
reduce C_in -> i
reduce k_1 -> a
shift o3 1 -> v
split o2 q -> t
shift t 1 -> z
merge z s -> u p
contract i:keep a:keep o1:drop p:drop
unfold u a -> h
match o0 i h v
)"},
};

TEST(Reachability, PublishedOperatorsStayWithEveryRuleOn) {
  const Specification spec(preset("paper/resnet18"));
  for (const RuleSet& rules : {RuleSet(), RuleSet::exact()}) {
    ChildGenerator generator(spec, rules);
    for (const Published& published : kPublished) {
      const Operator op = Operator::parse(published.text);
      const Path path = find_path(generator, op, spec.limits().max_depth);
      if (path.reached) continue;
      // An exact rule may keep another form of the same operator.
      WhyNotOptions options;
      options.max_nodes = 0;
      const WhyNot found = why_not(op, spec, rules, options);
      EXPECT_TRUE(found.admitted) << published.name << ": " << path.obstacle;
    }
  }
}

}  // namespace
}  // namespace syno
