#include "protocol/memcache/meta_flags.h"

#include <string>

#include <gtest/gtest.h>

#include "protocol/memcache/request_parser.h"

namespace kvferry::memcache {
namespace {

MetaFlags flags_of(std::string_view line) {
  RequestParser parser{ParserLimits{.stream_bytes_min = 0}};
  const std::string bytes = std::string(line) + "\r\n";
  const auto parsed = parser.parse(bytes);
  EXPECT_TRUE(parsed.is_done()) << line;
  MetaFlags flags = parsed.is_done() ? parse_meta_flags(parsed.value()) : MetaFlags{};
  flags.opaque = {};  // The bytes die here.
  return flags;
}

TEST(MetaFlags, KeepsTheOrderOfTheRequest) {
  const MetaFlags flags = flags_of("mg key Oq k f s v t");
  EXPECT_EQ(flags.error, MetaError::None);
  EXPECT_EQ(std::string(flags.letters().data(), flags.letters().size()), "Okfsvt");
  EXPECT_TRUE(flags.has('O') && flags.has('t'));
  EXPECT_FALSE(flags.has('q') || flags.has('T'));
}

TEST(MetaFlags, ReadsEveryNumber) {
  const MetaFlags flags =
      flags_of("ms k 1 T-1 N30 R2147483647 F4294967295 C18446744073709551615 E7 J8 D9 MA");
  EXPECT_EQ(flags.error, MetaError::None);
  EXPECT_EQ(flags.exptime, -1);
  EXPECT_EQ(flags.vivify_exptime, 30);
  EXPECT_EQ(flags.recache_exptime, 2147483647);
  EXPECT_EQ(flags.client_flags, 4294967295U);
  EXPECT_EQ(flags.compare_cas, UINT64_MAX);
  EXPECT_EQ(flags.new_cas, 7U);
  EXPECT_EQ(flags.initial, 8U);
  EXPECT_EQ(flags.delta, 9U);
  EXPECT_EQ(flags.mode, 'A');
}

TEST(MetaFlags, HasDefaults) {
  const MetaFlags flags = flags_of("ma k");
  EXPECT_EQ(flags.error, MetaError::None);
  EXPECT_EQ(flags.delta, 1U);
  EXPECT_EQ(flags.initial, 0U);
  EXPECT_EQ(flags.mode, 0);
  EXPECT_TRUE(flags.letters().empty());
}

TEST(MetaFlags, EchoesTheOpaqueAsItCame) {
  const std::string bytes = "mg k v Oab1\r\n";
  RequestParser parser{ParserLimits{}};
  const auto parsed = parser.parse(bytes);
  ASSERT_TRUE(parsed.is_done());
  EXPECT_EQ(parse_meta_flags(parsed.value()).opaque, "Oab1");
}

TEST(MetaFlags, LimitsTheOpaqueTo32BytesWithItsLetter) {
  EXPECT_EQ(flags_of("mg k O" + std::string(kOpaqueTokenBytesMax - 1, 'o')).error, MetaError::None);
  EXPECT_EQ(flags_of("mg k O" + std::string(kOpaqueTokenBytesMax, 'o')).error,
            MetaError::OpaqueTooLong);
  EXPECT_EQ(flags_of("ma k O" + std::string(kOpaqueTokenBytesMax, 'o')).error,
            MetaError::OpaqueTooLong);
  EXPECT_EQ(flags_of("mg k O").error, MetaError::None);
}

TEST(MetaFlags, AcceptsEveryKnownLetterInEveryCommand) {
  for (const std::string_view head : {"mg k", "ms k 1", "md k", "ma k", "me k"}) {
    for (const std::string_view flag :
         {"b", "c", "f", "h", "I",  "k",  "l",  "O",  "P",  "Pabc", "L",  "q", "s",
          "t", "u", "v", "x", "T0", "N0", "R0", "C0", "E0", "F0",   "J0", "D0"}) {
      const std::string line = std::string(head) + " " + std::string(flag);
      EXPECT_EQ(flags_of(line).error, MetaError::None) << line;
    }
  }
  // Where M means nothing, its text is not looked at.
  EXPECT_EQ(flags_of("mg k M0").error, MetaError::None);
  EXPECT_EQ(flags_of("md k M").error, MetaError::None);
}

struct Refusal {
  std::string_view line;
  MetaError error;
};

TEST(MetaFlags, RefusesWithTheWordsOfMemcached) {
  const Refusal refusals[] = {
      {"mg k S", MetaError::InvalidFlag},
      {"mg k z", MetaError::InvalidFlag},
      {"mg k 5", MetaError::InvalidFlag},
      {"mg k [", MetaError::InvalidFlag},
      {"mg k T 1", MetaError::BadToken},
      {"mg k v v", MetaError::DuplicateFlag},
      {"mg k P P", MetaError::DuplicateFlag},
      {"mg k O1 O2", MetaError::DuplicateFlag},
      {"mg k T", MetaError::BadToken},
      {"mg k T1x", MetaError::BadToken},
      {"mg k T2147483648", MetaError::BadToken},
      {"mg k N", MetaError::BadToken},
      {"mg k Rx", MetaError::BadToken},
      {"mg k C-1", MetaError::BadToken},
      {"mg k E18446744073709551616", MetaError::BadToken},
      {"mg k F4294967296", MetaError::BadLine},
      {"mg k J", MetaError::BadInitialValue},
      {"mg k Dx", MetaError::BadDelta},
      {"ms k 1 Mx", MetaError::BadSetMode},
      {"ms k 1 Me", MetaError::BadSetMode},
      {"ms k 1 M", MetaError::BadSetMode},
      {"ms k 1 MEE", MetaError::None},
      {"ma k MX", MetaError::BadArithMode},
      {"ma k Mi", MetaError::BadArithMode},
      {"ma k M+", MetaError::None},
      {"ma k S", MetaError::InvalidOrDuplicateFlag},
      {"ma k v v", MetaError::InvalidOrDuplicateFlag},
      {"ma k Tx", MetaError::InvalidOrDuplicateFlag},
      {"ma k Dx", MetaError::InvalidOrDuplicateFlag},
      // The first bad flag counts.
      {"mg k v v Tx", MetaError::DuplicateFlag},
      {"mg k Tx v v", MetaError::BadToken},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(flags_of(refusal.line).error, refusal.error) << refusal.line;
  }
}

TEST(MetaErrorLine, IsWhatMemcachedAnswers) {
  const std::string_view lines[] = {"",
                                    "invalid flag",
                                    "duplicate flag",
                                    "invalid or duplicate flag",
                                    "options flags are too long",
                                    "bad command line format",
                                    "bad token in command line format",
                                    "invalid numeric initial value",
                                    "invalid numeric delta value",
                                    "opaque token too long",
                                    "error decoding key",
                                    "invalid mode for ms M token",
                                    "invalid mode for ma M token"};
  EXPECT_EQ(meta_error_line(MetaError::None), "");
  for (std::size_t index = 1; index <= static_cast<std::size_t>(MetaError::BadArithMode); ++index) {
    EXPECT_EQ(meta_error_line(static_cast<MetaError>(index)),
              "CLIENT_ERROR " + std::string(lines[index]) + "\r\n");
  }
}

}  // namespace
}  // namespace kvferry::memcache
