#include "syno/graph/json_form.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno {
namespace {

constexpr const char* kForm =
    R"({"out": [{"size": "N", "unordered": false}, {"size": "C_out", "unordered": true}, {"size": "s*H", "unordered": false, "causal": true}], )"
    R"("in": [{"size": "N", "unordered": false}, {"size": "C_in", "unordered": true}, {"size": "H", "unordered": false}], )"
    R"("steps": [{"op": "reduce", "size": "s^-1*C_in", "out": "r0"}, {"op": "reduce", "size": "k", "out": "r1"}, )"
    R"({"op": "merge", "in": "o2", "block": "s", "out": ["c0", "c1"]}, )"
    R"({"op": "split", "in": ["r0", "c1"], "out": "c2"}, )"
    R"({"op": "unfold", "in": ["c0", "r1"], "causal": true, "out": "c3"}, )"
    R"({"op": "contract", "dims": [["o1", "drop"], ["c2", "keep"]]}, )"
    R"({"op": "shift", "in": "c3", "d": -2, "out": "c4"}], )"
    R"("match": ["o0", "c2", "c4"]})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    parse_operator_json(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonForm, RoundTrips) {
  const Operator op = parse_operator_json(kForm);
  const std::string written = operator_json(op);
  EXPECT_EQ(parse_operator_json(written), op);
  EXPECT_EQ(operator_json(Operator::parse(op.text())), written);
}

TEST(JsonForm, IsWrittenInOneOrderOfFields) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [N, H: causal]\nin [N, s*H]\nreduce k -> r0\nreduce C -> r1\ncontract "
      "o1:keep\n"
      "unfold o1 r0 causal -> c0\nstride c0 s -> c1\nexpand r1\nmatch o0 c1\n");
  EXPECT_EQ(
      operator_json(op),
      R"({"out": [{"size": "N", "unordered": false}, {"size": "H", "unordered": false, "causal": true}], "in": [{"size": "N", "unordered": false}, {"size": "s*H", "unordered": false}], "steps": [{"op": "reduce", "size": "C", "out": "r0"}, {"op": "reduce", "size": "k", "out": "r1"}, {"op": "expand", "in": "r0"}, {"op": "contract", "dims": [["o1", "keep"]]}, {"op": "unfold", "in": ["o1", "r1"], "causal": true, "out": "c0"}, {"op": "stride", "in": "c0", "S": "s", "out": "c1"}], "match": ["o0", "c1"]})");
}

TEST(JsonForm, NamesAreTheCallers) {
  const std::string own = replaced(replaced(kForm, "\"out\": \"r0\"", "\"out\": \"channel\""),
                                   "[\"r0\", \"c1\"]", "[\"channel\", \"c1\"]");
  EXPECT_EQ(parse_operator_json(own), parse_operator_json(kForm));
  // The graph calls it 'r0'.
  EXPECT_EQ(
      complaint(replaced(own, "[\"channel\", \"c1\"]", "[\"channel\", \"channel\"]")).substr(0, 22),
      "coordinate 'channel' i");
}

TEST(JsonForm, SaysWhichEntryIsWrongAndWhy) {
  const auto with = [](const std::string& from, const std::string& to) {
    return complaint(replaced(kForm, from, to));
  };
  EXPECT_EQ(with("\"c4\"]}", "\"c4\"], \"weights\": []}"),
            "the field 'weights' is not known\n  in the operator's JSON\n"
            "  expected: out, in, steps, match      got: the string \"'weights'\"");
  EXPECT_EQ(with("\"size\": \"s*H\", ", ""),
            "the field 'size' is missing\n  in dimension 2 of 'out' of the operator's JSON\n"
            "  expected: 'size'      got: only unordered, causal");
  EXPECT_EQ(with("[\"c2\", \"keep\"]", "[\"c2\", \"hold\"]"),
            "the field 'dims' is malformed: the role in entry 2 is not known\n"
            "  in step 6 (contract) of the operator's JSON\n"
            "  expected: a list of [name, role] with role keep, drop or join"
            "      got: the string \"hold\"");
  EXPECT_EQ(with("\"d\": -2", "\"d\": 1000001"),
            "the field 'd' is malformed\n  in step 7 (shift) of the operator's JSON\n"
            "  expected: a non-zero integer within 1000000      got: the number 1000001");
  EXPECT_EQ(with("\"op\": \"merge\"", "\"op\": \"share\""),
            "the step's 'op' is not known\n  in step 3 of the operator's JSON\n  expected: one of "
            "split, merge, shift, expand, unfold, stride, reduce, contract      got: the string "
            "\"share\"");
  EXPECT_EQ(with("\"match\": [\"o0\", \"c2\"", "\"match\": [\"o0\", 2"),
            "this is not the name of a coordinate\n  in 'match' of the operator's JSON\n"
            "  expected: a string      got: the number 2");
  EXPECT_EQ(with("\"out\": \"r1\"", "\"out\": \"r0\""),
            "the coordinate 'r0' is made twice\n  in step 2 (reduce) of the operator's JSON\n"
            "  expected: a new name      got: the string \"r0\"");
}

TEST(JsonForm, EveryCutOfItIsRefused) {
  const std::string form = kForm;
  for (std::size_t size = 0; size < form.size(); ++size)
    EXPECT_NE(complaint(form.substr(0, size)), "") << size;
}

TEST(JsonForm, DamageIsRefusedOrRead) {
  const std::string form = kForm;
  for (std::size_t place = 0; place < form.size(); ++place) {
    for (const char c : {'"', ',', ']', '1', '^', ' '}) {
      std::string damaged = form;
      damaged[place] = c;
      try {
        const Operator op = parse_operator_json(damaged);
        EXPECT_EQ(parse_operator_json(operator_json(op)), op) << damaged;
      } catch (const UserError&) {  // NOLINT(bugprone-empty-catch): this is what damage gives
      }
    }
  }
}

}  // namespace
}  // namespace syno
