#include "watch/streams.h"

#include <gtest/gtest.h>

namespace kvferry::watch {
namespace {

StreamMask both(Stream left, Stream right) {
  return mask_of(left) | mask_of(right);
}

TEST(Streams, AreFoundByTheBeginningOfTheirNames) {
  EXPECT_EQ(find_streams("fetchers"), mask_of(Stream::Fetchers));
  EXPECT_EQ(find_streams("mut  del"), both(Stream::Mutations, Stream::Deletions));
  EXPECT_EQ(find_streams(" rawcmds connevents "), both(Stream::RawCmds, Stream::ConnEvents));
  // The first in the order of the list.
  EXPECT_EQ(find_streams("p"), mask_of(Stream::ProxyReqs));
  EXPECT_EQ(find_streams("proxye"), mask_of(Stream::ProxyEvents));
}

TEST(Streams, FetchersAreWatchedWithoutAWord) {
  EXPECT_EQ(find_streams(""), mask_of(Stream::Fetchers));
  EXPECT_EQ(find_streams("  "), mask_of(Stream::Fetchers));
}

TEST(Streams, RefusesWhatIsNoStream) {
  for (const char* words : {"bogus", "fetchersx", "fetchers bogus", "FETCHERS", "\t"}) {
    EXPECT_EQ(find_streams(words), std::nullopt) << words;
  }
}

TEST(Streams, KeysAreUriEncoded) {
  std::string out = "key=";
  append_uri(out, std::string_view("aZ09-._~%/ \x01\xff\0", 14));
  EXPECT_EQ(out, "key=aZ09-._~%25%2F%20%01%FF%00");
}

}  // namespace
}  // namespace kvferry::watch
