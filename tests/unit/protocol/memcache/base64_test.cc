#include "protocol/memcache/base64.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace kvferry::memcache {
namespace {

std::optional<std::string> decode(std::string_view encoded) {
  std::array<char, kDecodedKeyBytesMax> out{};
  const auto decoded = decode_base64_key(encoded, out);
  return decoded ? std::optional<std::string>(*decoded) : std::nullopt;
}

std::string encode(std::string_view plain) {
  std::array<char, 400> out{};
  return std::string(encode_base64_key(plain, out));
}

TEST(Base64, AgreesWithKnownPairs) {
  const std::pair<std::string, std::string> pairs[] = {
      {"f", "Zg=="},           {"fo", "Zm8="},  {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},    {"cnt", "Y250"}, {std::string("\0\r\n \xff", 5), "AA0KIP8="},
      {"\xfb\xff\xfe", "+//+"}};
  for (const auto& [plain, encoded] : pairs) {
    EXPECT_EQ(encode(plain), encoded);
    EXPECT_EQ(decode(encoded), plain);
  }
}

TEST(Base64, RoundTripsEveryLengthAndByte) {
  std::string plain;
  for (std::size_t size = 1; size <= kDecodedKeyBytesMax; ++size) {
    plain.push_back(static_cast<char>(size * 37));
    EXPECT_EQ(decode(encode(plain)), plain) << size;
  }
}

TEST(Base64, RefusesWhatIsNone) {
  for (const std::string_view encoded : {"", "Zg", "Zg=", "Zm9", "=", "====", "Z===", "Zg==Zg==",
                                         "Zm9v====", "Zm 9", "Zm-_", "Zm9\xff"}) {
    EXPECT_EQ(decode(encoded), std::nullopt) << encoded;
  }
}

TEST(Base64, IgnoresLeftOverBitsAsMemcachedDoes) {
  EXPECT_EQ(decode("Zh=="), "f");
}

TEST(Base64, NeverWritesOverItsSpace) {
  std::array<char, 3> out{};
  EXPECT_TRUE(decode_base64_key("Zm9v", out).has_value());
  EXPECT_TRUE(decode_base64_key("Zm8=", std::span(out).first(2)).has_value());
  EXPECT_FALSE(decode_base64_key("Zm9v", std::span(out).first(2)).has_value());
  EXPECT_EQ(encode_base64_key("f", out), "");
}

}  // namespace
}  // namespace kvferry::memcache
