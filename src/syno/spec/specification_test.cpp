#include "syno/spec/specification.h"

#include <gtest/gtest.h>

#include "syno/spec/presets.h"
#include "syno/support/error.h"

namespace syno {
namespace {

SpecificationSource small() {
  SpecificationSource source;
  source.input = "[N, C_in: unordered, H]";
  source.output = "[N, C_out: unordered, H]";
  source.primary = {"N: 0", "C_in: 2", "C_out: 2", "H: 0"};
  source.coefficient = {"k=3: 2", "s=2: 1"};
  source.bindings = {Binding({{"C_in", 8}, {"C_out", 16}, {"H", 9}}),
                     Binding({{"C_in", 16}, {"C_out", 16}, {"H", 8}})};
  source.passed_through = {{0, 0}};
  return source;
}

template <class Change>
std::string error_after(Change change) {
  SpecificationSource source = small();
  change(source);
  try {
    Specification spec(source);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Specification, ReadsShapesVariablesAndBindings) {
  const Specification spec(small());
  EXPECT_EQ(spec.text(), "[N, C_in: unordered, H] -> [N, C_out: unordered, H]");
  EXPECT_EQ(spec.bindings().size(), 2U);
  // N is only passed through, so bindings need not give it.
  EXPECT_EQ(spec.bindings()[0][spec.variables()->index("N")], 1);
  EXPECT_EQ(spec.full_fit(), 3U);
}

TEST(Specification, FitIsTheSetOfBindingsWhereASizeIsAnInteger) {
  const Specification spec(small());
  const Variables& v = *spec.variables();
  EXPECT_EQ(spec.fit(Size::parse("s^-1*H", v)), 2U);
  EXPECT_EQ(spec.fit(Size::parse("s^-1*C_in", v)), 3U);
  EXPECT_FALSE(spec.legal(Size::parse("C_in^-1*H", v)));
  EXPECT_FALSE(spec.legal(Size()));
  EXPECT_FALSE(spec.fit_suffices(2));
}

TEST(Specification, EveryMistakeHasAClearError) {
  EXPECT_EQ(error_after([](auto& s) { s.input = "[N, C, H]"; }),
            "unknown variable 'C'; known variables: k, s, C_in, C_out, H, N\n  in shape \"[N, C, "
            "H]\", column 5");
  EXPECT_EQ(
      error_after([](auto& s) { s.output = "[N, H^-1]"; }),
      "dimension 1 has the primary variable 'H' in a denominator: H^-1\n  in shape \"[N, H^-1]\"\n"
      "  expected: primary variables with positive powers only");
  EXPECT_EQ(
      error_after([](auto& s) { s.coefficient[0] = "k=0: 2"; }),
      "the value of 'k' must be a positive integer, got 0\n  in variable \"k=0: 2\", column 3");
  EXPECT_EQ(
      error_after([](auto& s) { s.coefficient[0] = "k=-3: 2"; }),
      "the value of 'k' must be a positive integer, got -3\n  in variable \"k=-3: 2\", column 3");
  EXPECT_EQ(
      error_after([](auto& s) { s.coefficient[0] = "k=3"; }),
      "expected ':' and a budget, as in \"k: 2\", got the end\n  in variable \"k=3\", column 4");
  EXPECT_EQ(
      error_after([](auto& s) { s.primary.push_back("k: 1"); }),
      "variable 'k' is declared twice\n  expected: each variable once, primary or coefficient      "
      "got: \"k=3: 2\"");
  EXPECT_EQ(error_after([](auto& s) { s.bindings = {Binding({{"C_in", 8}, {"Q", 2}})}; }),
            "unknown variable 'Q' in binding \"C_in=8, Q=2\"\n  known variables: k, s, C_in, "
            "C_out, H, N");
  EXPECT_NE(error_after([](auto& s) {
              s.bindings = {Binding({{"C_in", 8}})};
            }).find("gives no value to C_out, H"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& s) {
              s.passed_through = {{1, 1}};
            }).find("joins dimensions of different sizes"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& s) { s.passed_through = {{7, 0}}; }).find("does not exist"),
            std::string::npos);
  EXPECT_NE(
      error_after([](auto& s) { s.multiplicities = {1}; }).find("one positive integer a binding"),
      std::string::npos);
  EXPECT_NE(error_after([](auto& s) {
              s.output = "[N, s^-1*H]";
            }).find("is not a positive integer under the binding"),
            std::string::npos);
}

TEST(Specification, RefusesLimitsUnderWhichThereIsNoOperator) {
  EXPECT_EQ(
      error_after([](auto& s) {
        s.limits.min_params = 200;
        s.limits.max_params = 100;
      }),
      "min_params=200 is above max_params=100: no operator is within both limits\n"
      "  expected: min_params of at most 100      got: min_params=200\n"
      "  hint: raise max_params, lower min_params, or give max_params=0, which means no limit");
  EXPECT_NE(error_after([](auto& s) {
              s.limits.min_macs = 2;
              s.limits.max_macs = 1;
            }).find("min_macs=2 is above max_macs=1"),
            std::string::npos);
  EXPECT_NE(error_after([](auto& s) {
              s.limits.min_weight_params = 2;
              s.limits.max_params = 1;
            }).find("min_weight_params=2 is above max_params=1"),
            std::string::npos);
  EXPECT_EQ(error_after([](auto& s) { s.limits.max_depth = 0; }),
            "limit 'max_depth' cannot be 0\n  expected: an integer of at least 1      got: 0");
  EXPECT_NE(error_after([](auto& s) { s.limits.max_weights = 0; }).find("at least 1"),
            std::string::npos);
  // 0 is no limit.
  EXPECT_NO_THROW(error_after([](auto& s) { s.limits.min_params = 200; }));
}

TEST(Specification, RefusesACoefficientOfOne) {
  const std::string error = error_after([](auto& s) { s.coefficient.push_back("t=1: 1"); });
  EXPECT_NE(error.find("coefficient 't' is 1 under every binding\n  in variable \"t=1: 1\""),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("expected: a coefficient of at least 2      got: t=1"), std::string::npos);
  EXPECT_NE(error.find("hint: leave 't' out of the specification"), std::string::npos);
  // It may be 1 in some of the layers.
  EXPECT_EQ(error_after([](auto& s) {
              s.coefficient.push_back("t=1: 1");
              std::map<std::string, std::int64_t> values = s.bindings[0].values();
              values["t"] = 2;
              s.bindings[0] = Binding(values);
            }),
            "no error");
}

TEST(Specification, KeyDependsOnContentOnly) {
  SpecificationSource other = small();
  std::swap(other.primary[0], other.primary[3]);
  std::swap(other.bindings[0], other.bindings[1]);
  EXPECT_EQ(Specification(small()).key(), Specification(other).key());
  other.limits.max_depth = 11;
  EXPECT_NE(Specification(small()).key(), Specification(other).key());
}

TEST(Limits, EachIsSetByNameAndRefusesNonsense) {
  Limits limits;
  set_limit(limits, "max_depth", 9);
  set_limit(limits, "even_windows", 1);
  set_limit(limits, "min_unfold_ratio", 1.5);
  EXPECT_EQ(limits.max_depth, 9);
  EXPECT_TRUE(limits.even_windows);
  EXPECT_EQ(limits.min_unfold_ratio, 1.5);
  EXPECT_THROW(set_limit(limits, "max_deepness", 9), UserError);
  try {
    set_limit(limits, "max_depth", -1);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "limit 'max_depth' cannot be -1\n"
                 "  expected: an integer of at least 1      got: -1");
  }
  EXPECT_THROW(set_limit(limits, "max_depth", 1.5), UserError);
  EXPECT_THROW(set_limit(limits, "even_windows", 2), UserError);
  for (const Option<Limits>& option : limit_options()) {
    Limits copy;
    EXPECT_NO_THROW(set_limit(copy, option.name, option.get(Limits()))) << option.name;
    EXPECT_EQ(copy, Limits()) << option.name;
  }
}

TEST(Presets, AreAllWellFormed) {
  for (const std::string& name : preset_names()) {
    SpecificationSource source = preset(name);
    if (name == "paper/readme") source.bindings = {Binding({{"H", 32}, {"W", 32}})};
    if (name == "paper/gcn") source.bindings = {Binding({{"N", 100}, {"H_in", 60}, {"H_out", 30}})};
    EXPECT_NO_THROW(Specification spec(source)) << name;
    EXPECT_FALSE(preset_doc(name).empty());
  }
  EXPECT_THROW(preset("paper/resnet"), UserError);
}

TEST(Presets, ResNet18HasTheLayersOfThePaper) {
  const Specification spec(preset("paper/resnet18"));
  EXPECT_EQ(spec.bindings().size(), 7U);
  std::int64_t layers = 0;
  for (const std::int64_t m : spec.multiplicities()) layers += m;
  EXPECT_EQ(layers, 19);
  // 0.15 and 0.9 of 1.814 GMACs, less the 118.5 MMACs of stem and classifier.
  EXPECT_NEAR(static_cast<double>(spec.limits().min_macs), 0.15 * 1.8140e9 - 118.53e6, 1e6);
  EXPECT_NEAR(static_cast<double>(spec.limits().max_macs), 0.90 * 1.8140e9 - 118.53e6, 1e6);
}

}  // namespace
}  // namespace syno
