#include "syno/support/json.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno::json {
namespace {

std::string complaint(const std::string& text) {
  try {
    read(text, "it");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Json, ReadsEveryKindOfValue) {
  const Value value =
      read(" {\"a\": [1, -2.5e3, true, false, null], \"\": {}, \"b\": \"x\"}\n", "it");
  ASSERT_NE(value.field("a"), nullptr);
  const List& items = *value.field("a")->as<List>();
  EXPECT_EQ(items[0].as<Number>()->whole, 1);
  EXPECT_EQ(items[1].as<Number>()->text, "-2.5e3");
  EXPECT_EQ(items[1].as<Number>()->whole, std::nullopt);
  EXPECT_EQ(*items[2].as<bool>(), true);
  EXPECT_EQ(*items[3].as<bool>(), false);
  EXPECT_TRUE(items[4].is_null());
  EXPECT_TRUE(value.field("")->as<Object>()->empty());
  EXPECT_EQ(*value.field("b")->as<std::string>(), "x");
  EXPECT_EQ(value.field("c"), nullptr);
  EXPECT_EQ(items[0].field("c"), nullptr);
}

TEST(Json, ReadsEscapesAndEveryLengthOfACharacter) {
  const Value value = read(R"("\"\\\/\b\f\n\r\t A\u0041\u00e9\u20AC\ud83d\ude00 é€😀")", "it");
  EXPECT_EQ(*value.as<std::string>(), "\"\\/\b\f\n\r\t AAé€😀 é€😀");
  EXPECT_EQ(read("\xEF\xBB\xBF 1", "it").as<Number>()->whole, 1);
}

TEST(Json, NumbersOf64BitsAreWholeAndOthersKeepTheirText) {
  EXPECT_EQ(read("-9223372036854775808", "it").as<Number>()->whole, INT64_MIN);
  const Value larger = read("9223372036854775808", "it");
  EXPECT_EQ(larger.as<Number>()->whole, std::nullopt);
  EXPECT_EQ(json::described(larger), "the number 9223372036854775808");
  EXPECT_EQ(json::described(read(std::string(300, '7'), "it")),
            "the number " + std::string(200, '7') + "... (300 characters)");
}

TEST(Json, WhatIsNoJsonIsRefusedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "Expecting value\n  in line 1, column 1"},
      {"\n é", "Expecting value\n  in line 2, column 2"},
      {"{", "Expecting property name enclosed in double quotes\n  in line 1, column 2"},
      {"{1: 2}", "Expecting property name enclosed in double quotes\n  in line 1, column 2"},
      {"{\"a\": 1,}", "Expecting property name enclosed in double quotes\n  in line 1, column 9"},
      {"{\"a\" 1}", "Expecting ':' delimiter\n  in line 1, column 6"},
      {"{\"a\": 1 \"b\"}", "Expecting ',' delimiter\n  in line 1, column 9"},
      {"{\"é\": }", "Expecting value\n  in line 1, column 7"},
      {"[1 2]", "Expecting ',' delimiter\n  in line 1, column 4"},
      {"[1,]", "Expecting value\n  in line 1, column 4"},
      {"[1", "Expecting ',' delimiter\n  in line 1, column 3"},
      {"1 2", "Extra data\n  in line 1, column 3"},
      {"01", "Extra data\n  in line 1, column 2"},
      {"1.", "Extra data\n  in line 1, column 2"},
      {"1e+", "Extra data\n  in line 1, column 2"},
      {"-", "Expecting value\n  in line 1, column 1"},
      {"nul", "Expecting value\n  in line 1, column 1"},
      {"NaN", "Expecting value\n  in line 1, column 1"},
      {"-Infinity", "Expecting value\n  in line 1, column 1"},
      {"\"abc", "Unterminated string starting at\n  in line 1, column 1"},
      {"\"a\\", "Unterminated string starting at\n  in line 1, column 1"},
      {"\"a\nb\"", "Invalid control character at\n  in line 1, column 3"},
      {"\"a\\x\"", "Invalid \\escape\n  in line 1, column 3"},
      {"\"\\u12g4\"", "Invalid \\uXXXX escape\n  in line 1, column 3"},
      {"\"\\u12", "Invalid \\uXXXX escape\n  in line 1, column 3"},
      {"\"a\\ud800\"", "half of a surrogate pair\n  in line 1, column 3"},
      {"\"\\ud800\\u0041\"", "half of a surrogate pair\n  in line 1, column 2"},
      {"\"\\udc00\"", "half of a surrogate pair\n  in line 1, column 2"},
      {"\"\xFF\"", "it is not UTF-8\n  in line 1, column 2"},
      {"\"\xC0\x80\"", "it is not UTF-8\n  in line 1, column 2"},
      {"\"\xED\xA0\x80\"", "it is not UTF-8\n  in line 1, column 2"},
      {"\"\xF4\x90\x80\x80\"", "it is not UTF-8\n  in line 1, column 2"},
      {"\"\xE2\x82", "it is not UTF-8\n  in line 1, column 2"},
  };
  for (const auto& [text, why] : cases)
    EXPECT_EQ(complaint(text), "it is not valid JSON: " + std::string(why)) << text;
}

TEST(Json, NamesTheFirstFieldThatStandsTwice) {
  EXPECT_EQ(complaint(R"([{"a": 1, "b": 2, "b": 3, "a": 4}])"),
            "it's JSON gives the field 'a' twice in one object");
  EXPECT_EQ(complaint(R"([{"a": 1}, {"a": {"a": 2}}])"), "");
}

TEST(Json, HostileSizesAreRefused) {
  EXPECT_NE(complaint(std::string(100'000, '[')).find("it is nested too deeply"),
            std::string::npos);
  EXPECT_EQ(complaint(std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']')), "");
  EXPECT_NE(complaint(std::string(5000, '9')).find("more than 4300 digits"), std::string::npos);
  std::string many = "[0";
  for (std::size_t n = 0; n < kMaxValues; ++n) many += ",0";
  EXPECT_NE(complaint(many + "]").find("more than 2,000,000 values"), std::string::npos);
}

TEST(Json, SaysWhatAValueIs) {
  const Value list = read(R"([null, true, 1.5, "a", [1, 2], {}])", "it");
  std::vector<std::string> found;
  for (const Value& value : *list.as<List>()) found.push_back(json::described(value));
  EXPECT_EQ(found, (std::vector<std::string>{"null", "true", "the number 1.5", "the string \"a\"",
                                             "a list of 2", "an object"}));
  EXPECT_EQ(json::described(Value{Foreign{"a Python set"}}), "a Python set");
  // Characters are counted, not bytes.
  std::string text;
  for (int i = 0; i < 40; ++i) text += "é";
  EXPECT_EQ(json::described(text), "the string \"" + text + "\"");
  EXPECT_EQ(json::described(text + "a"), "a long string");
}

TEST(Json, QuotedTextReadsBack) {
  const std::string text("a\"b\\c\n\x01 é\0z", 13);
  EXPECT_EQ(*read(json::quoted(text), "it").as<std::string>(), text);
  EXPECT_EQ(json::quoted("a\"\n"), "\"a\\\"\\u000a\"");
}

}  // namespace
}  // namespace syno::json
