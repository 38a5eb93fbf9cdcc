#include "route/mutator.h"

#include <gtest/gtest.h>

namespace kvferry::route {
namespace {

using Kind = MutateArgument::Kind;

/// Parts to write from, by number: 1 a request mg, 2 a request ms with a value, 3 a reply with a
/// value, 4 a reply without flags, 5 a text with a line end, 6 a text, 7 true, 8 nothing, 9 another
/// thing, 10 a classic request, 11 a classic reply.
struct Parts {
  Parts() {
    EXPECT_TRUE(get.assign("mg foo v Oab\r\n", ""));
    EXPECT_TRUE(set.assign("ms bar 5 T9\r\n", "hello\r\n"));
    EXPECT_TRUE(hit.assign("VA 3 t30 Ox\r\n", "abc\r\n"));
    EXPECT_TRUE(bare.assign("EN\r\n", ""));
    EXPECT_TRUE(classic.assign("touch baz 0\r\n", ""));
    EXPECT_TRUE(stored.assign("STORED\r\n", ""));
  }
  MutateArgument operator[](std::uint32_t number) const {
    switch (number) {
      case 1:
        return {.kind = Kind::Request, .request = &get};
      case 2:
        return {.kind = Kind::Request, .request = &set};
      case 3:
        return {.kind = Kind::Reply, .reply = &hit};
      case 4:
        return {.kind = Kind::Reply, .reply = &bare};
      case 5:
        return {.kind = Kind::Text, .text = "text\r\n"};
      case 6:
        return {.kind = Kind::Text, .text = "6"};
      case 7:
        return {.kind = Kind::True};
      case 9:
        return {.kind = Kind::Other};
      case 10:
        return {.kind = Kind::Request, .request = &classic};
      case 11:
        return {.kind = Kind::Reply, .reply = &stored};
      default:
        return {};
    }
  }

  RouteRequest get;
  RouteRequest set;
  RouteReply hit;
  RouteReply bare;
  RouteRequest classic;
  RouteReply stored;
};
constexpr std::uint32_t kPartsMax = 12;

struct Step {
  MutateKind kind;
  std::string text{};  // Its letter for CopyFlag.
  std::uint32_t argument = 0;
};

Mutator make(const std::vector<Step>& steps) {
  Mutator mutator;
  for (const Step& step : steps) {
    MutateStep& made = mutator.add(step.kind);
    made.argument = step.argument;
    if (step.kind == MutateKind::CopyFlag) {
      made.letter = step.text.front();
    } else {
      made.text = step.text;
    }
  }
  mutator.finish();
  return mutator;
}

std::string_view name_of(MutateResult result) {
  constexpr std::string_view kNames[] = {"written", "unusable", "too long", "malformed"};
  return kNames[static_cast<std::size_t>(result)];
}

template <typename Target>
MutateResult run(const std::vector<Step>& steps, const Parts& parts, Target& target) {
  Mutator mutator = make(steps);
  std::uint32_t number = 1;
  for (MutateArgument& argument : mutator.arguments()) {
    argument = parts[number];
    ++number;
  }
  return mutator.write(target);
}

std::string request_of(const std::vector<Step>& steps) {
  const Parts parts;
  RouteRequest request;
  const MutateResult result = run(steps, parts, request);
  if (result != MutateResult::Written) {
    EXPECT_TRUE(request.is_empty());
    return std::string(name_of(result));
  }
  EXPECT_TRUE(request.is_consistent());
  return std::string(request.line_text()) + "|" + std::string(request.value_with_end());
}

std::string reply_of(const std::vector<Step>& steps) {
  const Parts parts;
  RouteReply reply;
  const MutateResult result = run(steps, parts, reply);
  if (result != MutateResult::Written) {
    EXPECT_TRUE(reply.is_empty());
    return std::string(name_of(result));
  }
  return std::string(reply.bytes());
}

using enum MutateKind;

TEST(Mutator, WritesRequestsFromParts) {
  EXPECT_EQ(request_of({{SetCommand, "ms"},
                        {CopyKey, "", 1},
                        {CopyValue, "", 2},
                        {SetFlag, "T30"},
                        {SetFlag, "c"},
                        {CopyFlag, "O", 1}}),
            "ms foo 5 T30 c Oab|hello\r\n");
  EXPECT_EQ(request_of({{CopyCommand, "", 1}, {SetKey, "key"}}), "mg key|");
  EXPECT_EQ(request_of({{CopyCommand, "", 10}, {CopyKey, "", 10}, {CopyKey, "", 6}}),
            "touch baz 6|");
  EXPECT_EQ(request_of({{SetCommand, "ms"}, {SetKey, "k"}, {CopyValue, "", 3}}), "ms k 3|abc\r\n");
  EXPECT_EQ(request_of({{SetCommand, "ms"}, {SetKey, "k"}, {CopyValue, "", 5}}), "ms k 4|text\r\n");
}

TEST(Mutator, CopiesFlagsOfAnySource) {
  const struct {
    const char* letter;
    std::uint32_t argument;
    const char* line;
  } table[] = {
      {"O", 1, "mg k Oab|"}, {"v", 1, "mg k v|"},       {"z", 1, "mg k|"},    {"T", 2, "mg k T9|"},
      {"t", 3, "mg k t30|"}, {"z", 3, "mg k|"},         {"t", 4, "mg k|"},    {"t", 6, "mg k t6|"},
      {"t", 7, "mg k t|"},   {"t", 8, "mg k|"},         {"t", 9, "unusable"}, {"t", 10, "unusable"},
      {"t", 11, "unusable"}, {"t", kPartsMax, "mg k|"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(request_of({{SetCommand, "mg"}, {SetKey, "k"}, {CopyFlag, row.letter, row.argument}}),
              row.line)
        << row.letter << row.argument;
  }
}

TEST(Mutator, CopiesAllFlagsOfMetaLines) {
  const struct {
    std::uint32_t argument;
    const char* line;
  } table[] = {
      {1, "mg k v Oab c|"}, {2, "mg k T9 c|"}, {3, "mg k t30 Ox c|"}, {4, "mg k c|"},
      {6, "mg k 6 c|"},     {7, "unusable"},   {8, "unusable"},       {9, "unusable"},
      {10, "unusable"},     {11, "unusable"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(
        request_of(
            {{SetCommand, "mg"}, {SetKey, "k"}, {CopyAllFlags, "", row.argument}, {SetFlag, "c"}}),
        row.line)
        << row.argument;
  }
}

TEST(Mutator, WritesNothingFromArgumentsThatItCannotUse) {
  for (const std::uint32_t argument : {7U, 8U, 9U, 3U, kPartsMax}) {
    EXPECT_EQ(request_of({{SetCommand, "mg"}, {CopyKey, "", argument}}), "unusable") << argument;
    EXPECT_EQ(request_of({{CopyCommand, "", argument}, {SetKey, "k"}}), "unusable") << argument;
  }
  for (const std::uint32_t argument : {1U, 4U, 6U, 7U, 8U, 9U, 10U, 11U}) {
    EXPECT_EQ(request_of({{SetCommand, "ms"}, {SetKey, "k"}, {CopyValue, "", argument}}),
              "unusable")
        << argument;
  }
  // A line has one value.
  EXPECT_EQ(request_of({{SetCommand, "ms"}, {SetKey, "k"}, {CopyValue, "", 2}, {CopyValue, "", 5}}),
            "unusable");
}

TEST(Mutator, RefusesLinesThatAreNoRequest) {
  EXPECT_EQ(request_of({{SetCommand, "nope"}, {SetKey, "k"}}), "malformed");
  EXPECT_EQ(request_of({{SetKey, "k"}}), "malformed");
  EXPECT_EQ(request_of({{SetCommand, "mg"}, {SetKey, "k\r\nflush_all"}}), "malformed");
  EXPECT_EQ(request_of({{SetCommand, "mg"}, {SetKey, std::string(251, 'k')}}), "malformed");
  EXPECT_EQ(request_of({{SetCommand, "mg"}, {SetKey, std::string(5000, 'k')}}), "too long");
  const std::size_t room = kEditedLineBytesMax - 8;
  for (const std::size_t size : {room - 1, room, room + 1}) {
    const std::string flag = "O" + std::string(size - 1, 'o');
    EXPECT_EQ(request_of({{SetCommand, "mg"}, {SetKey, "kk"}, {SetFlag, flag}}),
              size > room ? "too long" : "mg kk " + flag + "|")
        << size;
  }
}

TEST(Mutator, WritesRepliesFromParts) {
  EXPECT_EQ(reply_of({{SetCode, "VA"}, {CopyValue, "", 5}, {SetFlag, "t30"}, {CopyFlag, "O", 1}}),
            "VA 4 t30 Oab\r\ntext\r\n");
  EXPECT_EQ(reply_of({{CopyCode, "", 3}, {CopyValue, "", 3}, {CopyAllFlags, "", 3}}),
            "VA 3 t30 Ox\r\nabc\r\n");
  EXPECT_EQ(reply_of({{CopyCode, "", 4}}), "EN\r\n");
  EXPECT_EQ(reply_of({{CopyCode, "", 11}}), "unusable");
  EXPECT_EQ(reply_of({{CopyCode, "", 1}}), "unusable");
  EXPECT_EQ(reply_of({{SetError, "SERVER_ERROR no luck"}}), "SERVER_ERROR no luck\r\n");
  EXPECT_EQ(reply_of({{SetError, "ERROR"}}), "ERROR\r\n");
  EXPECT_EQ(reply_of({{SetCode, "HD"}, {CopyValue, "", 5}}), "malformed");
  EXPECT_EQ(reply_of({{SetCode, "VA"}}), "malformed");
  EXPECT_EQ(reply_of({{SetCode, "rubbish"}}), "malformed");
  EXPECT_EQ(reply_of({{SetError, "SERVER_ERROR a\r\nHD"}}), "malformed");
}

TEST(Mutator, KnowsTheAnswerForNothingThereOfEachCommand) {
  const struct {
    const char* line;
    const char* answer;
  } table[] = {
      {"mg k", "EN\r\n"},
      {"ms k 1", "NS\r\n"},
      {"md k", "NF\r\n"},
      {"ma k", "NF\r\n"},
      {"get k", "END\r\n"},
      {"gets k", "END\r\n"},
      {"gat 0 k", "END\r\n"},
      {"gats 0 k", "END\r\n"},
      {"set k 0 0 1", "NOT_STORED\r\n"},
      {"add k 0 0 1", "NOT_STORED\r\n"},
      {"cas k 0 0 1 1", "NOT_STORED\r\n"},
      {"replace k 0 0 1", "NOT_STORED\r\n"},
      {"append k 0 0 1", "NOT_STORED\r\n"},
      {"prepend k 0 0 1", "NOT_STORED\r\n"},
      {"incr k 1", "NOT_FOUND\r\n"},
      {"decr k 1", "NOT_FOUND\r\n"},
      {"touch k 0", "NOT_FOUND\r\n"},
      {"delete k", "NOT_FOUND\r\n"},
      {"mn", ""},
      {"me k", ""},
      {"version", ""},
  };
  for (const auto& row : table) {
    RouteRequest request;
    ASSERT_TRUE(request.assign(std::string(row.line) + "\r\n", "")) << row.line;
    Mutator mutator = make({{NothingThere, "", 1}});
    mutator.arguments()[0] = {.kind = Kind::Request, .request = &request};
    RouteReply reply;
    const MutateResult result = mutator.write(reply);
    EXPECT_EQ(reply.bytes(), row.answer) << row.line;
    EXPECT_EQ(result == MutateResult::Written, !reply.bytes().empty()) << row.line;
  }
  EXPECT_EQ(reply_of({{NothingThere, "", 6}}), "unusable");
}

TEST(Mutator, CanWriteARequestFromItself) {
  RouteRequest request;
  ASSERT_TRUE(request.assign("mg a-rather-long-key-to-move v Oabc t\r\n", ""));
  Mutator mutator = make({{SetCommand, "md"}, {CopyKey, "", 1}, {CopyFlag, "O", 1}});
  mutator.arguments()[0] = {.kind = Kind::Request, .request = &request};
  EXPECT_EQ(mutator.write(request), MutateResult::Written);
  EXPECT_EQ(request.line_text(), "md a-rather-long-key-to-move Oabc");
}

}  // namespace
}  // namespace kvferry::route
