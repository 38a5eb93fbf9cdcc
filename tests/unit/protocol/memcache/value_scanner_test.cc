#include "protocol/memcache/value_scanner.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/memcache/reply_parser.h"
#include "tests/support/splitter.h"

namespace kvferry::memcache {
namespace {

using ::testing::ElementsAre;

/// Runs pieces of a reply through parser and scanner; tells each item as "key:bytes of the item",
/// and the closing line as it is.
std::vector<std::string> scan(const test::Pieces& pieces) {
  ReplyParser parser;
  ValueScanner scanner;
  std::vector<std::string> told;
  std::string held;
  parser.start(ReplyKind::Retrieval);
  for (const std::string_view piece : pieces) {
    held += piece;
    for (auto parsed = parser.next(held); parsed.is_done(); parsed = parser.next(held)) {
      const std::string chunk = held.substr(0, parsed.value().size_bytes);
      held.erase(0, chunk.size());
      scanner.feed(chunk);
      for (ScanEvent event = scanner.next(); event.kind != ScanEvent::Kind::NeedChunk;
           event = scanner.next()) {
        if (event.kind == ScanEvent::Kind::ItemRest) {
          told.back() += event.bytes;
        } else {
          told.push_back(std::string(event.key) + ":" + std::string(event.bytes));
        }
        const bool is_item = event.kind == ScanEvent::Kind::Item;
        EXPECT_TRUE(!is_item || event.total_bytes >= event.bytes.size());
        EXPECT_TRUE(!is_item ||
                    event.is_item_complete == (event.total_bytes == event.bytes.size()));
      }
      if (parsed.value().is_last) {
        return told;
      }
    }
  }
  told.push_back("not complete");
  return told;
}

TEST(ValueScanner, CutsItemsHoweverBytesAreCut) {
  const std::string whole =
      "VALUE a 0 5\r\nEND\r\n\r\nVALUE b 7 0\r\n\r\nVALUE c 0 1 99\r\nx\r\nEND\r\n";
  for (const test::Pieces& pieces : test::all_cuts(whole)) {
    EXPECT_THAT(scan(pieces), ElementsAre("a:VALUE a 0 5\r\nEND\r\n\r\n", "b:VALUE b 7 0\r\n\r\n",
                                          "c:VALUE c 0 1 99\r\nx\r\n", ":END\r\n"));
  }
}

TEST(ValueScanner, TellsErrorLinesFromEnd) {
  const std::string whole = "VALUE a 0 1\r\nx\r\nSERVER_ERROR out of memory\r\n";
  for (const test::Pieces& pieces : test::all_cuts(whole)) {
    EXPECT_THAT(scan(pieces),
                ElementsAre("a:VALUE a 0 1\r\nx\r\n", ":SERVER_ERROR out of memory\r\n"));
  }
  ValueScanner scanner;
  scanner.feed("CLIENT_ERROR bad\r\n");
  EXPECT_EQ(scanner.next().kind, ScanEvent::Kind::Error);
  scanner.feed("END\r\n");
  EXPECT_EQ(scanner.next().kind, ScanEvent::Kind::End);
  EXPECT_EQ(scanner.next().kind, ScanEvent::Kind::NeedChunk);
}

TEST(ValueScanner, KnowsTheSizeOfAnItemAtItsHeader) {
  ValueScanner scanner;
  scanner.feed("VALUE key 0 1000000\r\n");
  const ScanEvent item = scanner.next();
  EXPECT_EQ(item.key, "key");
  EXPECT_EQ(item.total_bytes, 21U + 1000000U + 2U);
  EXPECT_FALSE(item.is_item_complete);
  scanner.feed("some");
  const ScanEvent rest = scanner.next();
  EXPECT_EQ(rest.kind, ScanEvent::Kind::ItemRest);
  EXPECT_EQ(rest.bytes, "some");
  scanner.reset();
  scanner.feed("END\r\n");
  EXPECT_EQ(scanner.next().kind, ScanEvent::Kind::End);
}

}  // namespace
}  // namespace kvferry::memcache
