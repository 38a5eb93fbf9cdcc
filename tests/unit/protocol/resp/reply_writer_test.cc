#include "protocol/resp/reply_writer.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "protocol/resp/reply_scanner.h"

namespace kvferry::resp {
namespace {

/// What `compose` writes in both versions; every one must be a reply, or the begin of one.
template <typename Compose>
void expect_written(Compose compose, const std::string& two, const std::string& three) {
  for (const Version version : {Version::Two, Version::Three}) {
    std::string text;
    ReplyWriter writer(version, text);
    compose(writer);
    EXPECT_EQ(text, version == Version::Two ? two : three);
    ReplyScanner scanner;
    EXPECT_NE(scanner.scan(text).state, ReplyScanner::State::Bad) << text;
  }
}

TEST(ReplyWriter, WritesWhatIsEqualInBothVersions) {
  expect_written([](ReplyWriter& to) { to.simple("OK"); }, "+OK\r\n", "+OK\r\n");
  expect_written([](ReplyWriter& to) { to.error("ERR no\r\nway"); }, "-ERR no  way\r\n",
                 "-ERR no  way\r\n");
  expect_written([](ReplyWriter& to) { to.integer(std::numeric_limits<std::int64_t>::min()); },
                 ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
  expect_written([](ReplyWriter& to) { to.bulk("a\r\nb"); }, "$4\r\na\r\nb\r\n",
                 "$4\r\na\r\nb\r\n");
  expect_written([](ReplyWriter& to) { to.array(3); }, "*3\r\n", "*3\r\n");
}

TEST(ReplyWriter, GivesOldClientsWhatTheyKnow) {
  expect_written([](ReplyWriter& to) { to.null(); }, "$-1\r\n", "_\r\n");
  expect_written([](ReplyWriter& to) { to.null_array(); }, "*-1\r\n", "_\r\n");
  expect_written([](ReplyWriter& to) { to.boolean(true); }, ":1\r\n", "#t\r\n");
  expect_written([](ReplyWriter& to) { to.boolean(false); }, ":0\r\n", "#f\r\n");
  expect_written([](ReplyWriter& to) { to.number(1.5); }, "$3\r\n1.5\r\n", ",1.5\r\n");
  expect_written([](ReplyWriter& to) { to.number(-HUGE_VAL); }, "$4\r\n-inf\r\n", ",-inf\r\n");
  expect_written([](ReplyWriter& to) { to.number(std::nan("")); }, "$3\r\nnan\r\n", ",nan\r\n");
  expect_written([](ReplyWriter& to) { to.verbatim("txt", "abc"); }, "$3\r\nabc\r\n",
                 "=7\r\ntxt:abc\r\n");
  expect_written([](ReplyWriter& to) { to.map(2); }, "*4\r\n", "%2\r\n");
  expect_written([](ReplyWriter& to) { to.set(2); }, "*2\r\n", "~2\r\n");
  expect_written([](ReplyWriter& to) { to.push(2); }, "*2\r\n", ">2\r\n");
}

}  // namespace
}  // namespace kvferry::resp
