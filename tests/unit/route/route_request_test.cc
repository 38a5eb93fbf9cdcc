#include "route/route_request.h"

#include <gtest/gtest.h>

#include "protocol/memcache/request_parser.h"

namespace kvferry::route {
namespace {

using call::Quiet;
using memcache::Command;
using memcache::Request;

Request parse(std::string_view bytes) {
  memcache::RequestParser parser{memcache::ParserLimits{}};
  const auto parsed = parser.parse(bytes);
  EXPECT_TRUE(parsed.is_done()) << bytes;
  return parsed.is_done() ? parsed.value() : Request{};
}

/// A client's request and a route's view of it.
struct Borrowed {
  explicit Borrowed(std::string_view text) : bytes(text) { request.borrow(parse(bytes)); }

  /// What would be sent.
  std::string sent() {
    const Request wire = request.wire();
    EXPECT_FALSE(wire.quiet || wire.noreply);
    return {wire.line.data(), wire.size_bytes};
  }

  std::string bytes;
  RouteRequest request;
};

TEST(RouteRequest, BorrowsTheClientsBytesUntilKept) {
  Borrowed client("set k 1 2 3\r\nabc\r\n");
  EXPECT_EQ(client.request.key().data(), client.bytes.data() + 4);
  EXPECT_EQ(client.request.wire().line.data(), client.bytes.data());
  client.request.keep();
  client.bytes.assign(client.bytes.size(), '#');
  EXPECT_EQ(client.request.key(), "k");
  EXPECT_EQ(client.request.line_text(), "set k 1 2 3");
  EXPECT_EQ(client.request.value_with_end(), "abc\r\n");
  EXPECT_EQ(client.sent(), "set k 1 2 3\r\nabc\r\n");
  EXPECT_EQ(client.request.wire().value, "abc");
}

/// Small ones lie in the object, larger ones do not.
TEST(RouteRequest, KeepsRequestsOfAnySizeThroughEdits) {
  constexpr std::size_t kFrame = std::string_view("ms some-key 100 t0\r\n\r\n").size();
  for (const std::size_t bytes :
       {kRequestBytesNear - 1, kRequestBytesNear, kRequestBytesNear + 1, 4 * kRequestBytesKept}) {
    SCOPED_TRACE(bytes);
    std::string value(bytes - kFrame, 'v');
    std::string head = "ms some-key " + std::to_string(value.size()) + " t0";
    value.resize(bytes - head.size() - 4, 'w');
    head = "ms some-key " + std::to_string(value.size()) + " t0";
    Borrowed client(head + "\r\n" + value + "\r\n");
    client.request.keep();
    client.bytes.assign(client.bytes.size(), '#');
    EXPECT_EQ(client.sent(), head + "\r\n" + value + "\r\n");
    EXPECT_EQ(client.request.trim_key_left(1), EditError::None);
    EXPECT_EQ(client.request.trim_key_right(2), EditError::None);
    EXPECT_EQ(client.request.key(), "ome-k");
    head.replace(3, 8, " ome-k  ");
    EXPECT_EQ(client.sent(), head + "\r\n" + value + "\r\n");
    EXPECT_EQ(client.request.add_flag('q', ""), EditError::None);
    EXPECT_EQ(client.request.line_text(), head + " q");
    EXPECT_EQ(client.request.value_with_end(), value + "\r\n");
    client.request.keep();
    EXPECT_EQ(client.request.set_token(2, "k2"), EditError::None);
    EXPECT_EQ(client.request.key(), "k2");
    EXPECT_EQ(client.request.value_with_end(), value + "\r\n");
    // Another request takes the place of the first.
    client.request.reset();
    client.bytes = "mg x v\r\n";
    client.request.borrow(parse(client.bytes));
    client.request.keep();
    EXPECT_EQ(client.sent(), "mg x v\r\n");
  }
}

TEST(RouteRequest, IsEmptyBeforeBorrowAndAfterReset) {
  RouteRequest request;
  EXPECT_TRUE(request.is_empty());
  request.keep();
  EXPECT_TRUE(request.assign("set k 0 0 1 noreply\r\n", "x\r\n"));
  EXPECT_FALSE(request.is_empty());
  request.reset();
  EXPECT_TRUE(request.is_empty());
  EXPECT_FALSE(request.has_value());
  EXPECT_EQ(request.quietness(), Quiet::No);
  EXPECT_EQ(request.token_count(), 0U);
  EXPECT_EQ(request.token(1), "");
  EXPECT_EQ(request.key(), "");
}

TEST(RouteRequest, CountsTokensFromTheCommand) {
  const struct {
    const char* bytes;
    std::size_t count;
    const char* second;
    const char* key;
  } table[] = {
      {"mg foo v t\r\n", 4, "foo", "foo"},
      {"get bar\n", 2, "bar", "bar"},
      {"gat 30 foo\r\n", 3, "30", "foo"},
      {"incr n  5 \r\n", 3, "n", "n"},
      {"mn\r\n", 0, "", ""},
      {"quit\r\n", 0, "", ""},
      {"stats items\r\n", 2, "items", ""},
  };
  for (const auto& row : table) {
    const Borrowed client(row.bytes);
    EXPECT_EQ(client.request.token_count(), row.count) << row.bytes;
    EXPECT_EQ(client.request.token(2), row.second) << row.bytes;
    EXPECT_EQ(client.request.key(), row.key) << row.bytes;
    EXPECT_EQ(client.request.token(row.count + 1), "") << row.bytes;
    EXPECT_EQ(client.request.token(0), "") << row.bytes;
  }
}

TEST(RouteRequest, FindsFlagsBehindTheKeyAndTheLength) {
  const Borrowed get("mg v Oab  t\r\n");
  EXPECT_FALSE(get.request.find_flag('v').is_found);
  EXPECT_EQ(get.request.find_flag('O').text, "ab");
  EXPECT_TRUE(get.request.find_flag('t').is_found);
  const Borrowed set("ms k 2 T30\r\nhi\r\n");
  EXPECT_FALSE(set.request.find_flag('2').is_found);
  EXPECT_EQ(set.request.find_flag('T').text, "30");
  const Borrowed classic("get k t\r\n");
  EXPECT_FALSE(classic.request.find_flag('t').is_found);
  const Borrowed none("mn\r\n");
  EXPECT_FALSE(none.request.find_flag('n').is_found);
}

TEST(RouteRequest, BlanksWhatWouldSilenceAServer) {
  const struct {
    const char* bytes;
    const char* sent;
  } table[] = {
      {"ms k 2 q\r\nhi\r\n", "ms k 2  \r\nhi\r\n"},
      {"ms q 2 q T9 q\r\nqq\r\n", "ms q 2   T9  \r\nqq\r\n"},
      {"mg k Oq q\r\n", "mg k Oq  \r\n"},
      {"mg q qx v\r\n", "mg q  x v\r\n"},
      {"md q q\n", "md q  \n"},
      {"set k 0 0 1 noreply\r\nx\r\n", "set k 0 0 1 noreplY\r\nx\r\n"},
      {"incr k 5 noreply \r\n", "incr k 5 noreplY \r\n"},
      {"touch noreply 5 noreply noreply\r\n", "touch noreply 5 noreply noreplY\r\n"},
      // memcached refuses another word behind the key of delete.
      {"delete k noreply\r\n", "delete k        \r\n"},
      {"delete k noreply  noreply \r\n", "delete k                  \r\n"},
      {"delete noreply noreply\r\n", "delete noreply        \r\n"},
      {"flush_all noreply\r\n", "flush_all noreplY\r\n"},
  };
  for (const auto& row : table) {
    Borrowed client(row.bytes);
    EXPECT_EQ(client.sent(), row.sent);
    EXPECT_EQ(client.bytes, row.bytes) << "the client's bytes are not ours to write";
    client.request.keep();
    EXPECT_EQ(client.sent(), row.sent);
    const Request wire = client.request.wire();
    EXPECT_EQ(wire.key, client.request.key());
    if (!wire.key.empty()) {
      EXPECT_GT(wire.key.data(), wire.line.data());
      EXPECT_LT(wire.key.data(), wire.line.data() + wire.line.size());
    }
  }
}

TEST(RouteRequest, RemembersTheSilenceThatTheClientAskedFor) {
  const struct {
    const char* bytes;
    Quiet quiet;
  } table[] = {
      {"mg k v q\r\n", Quiet::Miss},    {"ms k 0 q\r\n\r\n", Quiet::Done},
      {"md k q\r\n", Quiet::Done},      {"ma k q\r\n", Quiet::Done},
      {"mg k v\r\n", Quiet::No},        {"delete k noreply\r\n", Quiet::Good},
      {"get k noreply\r\n", Quiet::No},
  };
  for (const auto& row : table) {
    Borrowed client(row.bytes);
    EXPECT_EQ(client.request.quietness(), row.quiet) << row.bytes;
    client.request.wire();
    EXPECT_EQ(client.request.quietness(), row.quiet) << row.bytes;
  }
}

TEST(RouteRequest, IsLoudWhenItsScriptTakesTheFlagAway) {
  Borrowed client("mg k v q\r\n");
  client.request.wire();
  EXPECT_EQ(client.request.replace_flag_token('q', ""), EditError::None);
  EXPECT_EQ(client.request.quietness(), Quiet::No);
  EXPECT_EQ(client.sent(), "mg k v\r\n");
}

TEST(RouteRequest, EditsInPlaceAndAppendsAtTheEnd) {
  Borrowed client("mg foo v O1 t f\r\n");
  RouteRequest& request = client.request;
  EXPECT_EQ(request.add_flag('k', ""), EditError::None);
  EXPECT_EQ(request.replace_flag_token('v', ""), EditError::None);
  EXPECT_EQ(request.replace_flag_token('O', "O2"), EditError::None);
  EXPECT_EQ(request.add_flag('T', "30"), EditError::None);
  EXPECT_EQ(request.replace_flag('t', 's', ""), EditError::None);
  EXPECT_EQ(request.set_token(2, "newname"), EditError::None);
  EXPECT_EQ(client.sent(), "mg newname O2 s f k T30\r\n");
  EXPECT_EQ(request.key(), "newname");
  EXPECT_EQ(client.bytes, "mg foo v O1 t f\r\n");
}

TEST(RouteRequest, KeepsTheValueBehindAnEditedLine) {
  for (const bool is_kept : {false, true}) {
    Borrowed client("ms k 2 T90 q\r\nhi\r\n");
    if (is_kept) {
      client.request.keep();
    }
    EXPECT_EQ(client.request.replace_flag('T', 'T', "1000"), EditError::None);
    EXPECT_EQ(client.sent(), "ms k 2 T1000  \r\nhi\r\n");
    EXPECT_EQ(client.request.replace_flag_token('T', ""), EditError::None);
    EXPECT_EQ(client.sent(), "ms k 2  \r\nhi\r\n");
    EXPECT_EQ(client.request.value_with_end(), "hi\r\n");
    EXPECT_TRUE(client.request.is_consistent());
  }
}

TEST(RouteRequest, RemovesTokensWithTheirBlanks) {
  Borrowed client("mg  foo   v  t \r\n");
  EXPECT_EQ(client.request.set_token(3, ""), EditError::None);
  EXPECT_EQ(client.request.line_text(), "mg  foo  t ");
  Borrowed first("mg get k\r\n");
  EXPECT_EQ(first.request.set_token(1, ""), EditError::None);
  EXPECT_EQ(first.request.line_text(), "get k");
  EXPECT_EQ(first.request.command(), Command::Get);
}

TEST(RouteRequest, RefusesEditsThatMakeNoRequestAndChangesNothing) {
  const struct {
    const char* bytes;
    std::size_t token;
    std::string text;
    EditError error;
  } table[] = {
      {"mg k v\r\n", 1, "bogus", EditError::Malformed},
      {"mg k v\r\n", 9, "x", EditError::NoSuchToken},
      {"mg k v\r\n", 0, "x", EditError::NoSuchToken},
      {"mn\r\n", 1, "x", EditError::NoSuchToken},
      {"mg k v\r\n", 2, std::string(251, 'k'), EditError::Malformed},
      {"mg k v\r\n", 2, std::string(kEditedLineBytesMax, 'k'), EditError::TooLong},
      // A second line would be a request of its own.
      {"mg k v\r\n", 2, "k\r\nflush_all", EditError::Malformed},
      {"set k 1 2 3\r\nabc\r\n", 5, "4", EditError::Malformed},
      {"set k 1 2 3\r\nabc\r\n", 4, "", EditError::Malformed},
      {"set k 1 2 3\r\nabc\r\n", 1, "get", EditError::Malformed},
      {"set k 0 0 0\r\n\r\n", 5, "1", EditError::Malformed},
  };
  for (const auto& row : table) {
    Borrowed client(row.bytes);
    EXPECT_EQ(client.request.set_token(row.token, row.text), row.error) << row.bytes << row.text;
    EXPECT_EQ(client.sent(), row.bytes);
    EXPECT_EQ(client.request.wire().line.data(), client.bytes.data());
  }
}

TEST(RouteRequest, TakesEditedLinesUpToTheirLimit) {
  const std::string before = "mg k O";
  const std::size_t room = kEditedLineBytesMax - before.size() - 2;
  for (const std::size_t size : {room - 1, room, room + 1}) {
    Borrowed client("mg k\r\n");
    const EditError wanted = size > room ? EditError::TooLong : EditError::None;
    EXPECT_EQ(client.request.add_flag('O', std::string(size, 'o')), wanted) << size;
    EXPECT_EQ(client.request.find_flag('O').text.size(), size > room ? 0 : size);
  }
}

TEST(RouteRequest, HasFlagsToEditInMetaRequestsOnly) {
  Borrowed classic("get k\r\n");
  EXPECT_EQ(classic.request.add_flag('v', ""), EditError::NotMeta);
  EXPECT_EQ(classic.request.replace_flag_token('v', ""), EditError::NotMeta);
  EXPECT_EQ(classic.request.replace_flag('v', 't', ""), EditError::NotMeta);
  Borrowed none("mn\r\n");
  EXPECT_EQ(none.request.add_flag('v', ""), EditError::NotMeta);
  Borrowed get("mg k\r\n");
  EXPECT_EQ(get.request.replace_flag_token('v', "v"), EditError::NoSuchToken);
  EXPECT_EQ(get.request.replace_flag('v', 't', ""), EditError::NoSuchToken);
}

TEST(RouteRequest, RefusesFlagsBeyondTheTokensOfAMetaLine) {
  Borrowed client("mg k\r\n");
  std::size_t added = 0;
  while (added < 100 && client.request.add_flag('v', "") == EditError::None) {
    ++added;
  }
  EXPECT_EQ(added, memcache::kMetaTokensMax - 2);
}

TEST(RouteRequest, TrimsTheKeyWithoutMovingTheRest) {
  Borrowed client("get left/foo-end other\r\n");
  EXPECT_EQ(client.request.trim_key_left(5), EditError::None);
  EXPECT_EQ(client.request.trim_key_right(4), EditError::None);
  EXPECT_EQ(client.request.key(), "foo");
  EXPECT_EQ(client.sent(), "get      foo     other\r\n");
  EXPECT_EQ(client.request.wire().keys, "foo     other");
  EXPECT_EQ(client.request.trim_key_left(3), EditError::Malformed);
  EXPECT_EQ(client.request.trim_key_right(3), EditError::Malformed);
  EXPECT_EQ(client.request.trim_key_left(2), EditError::None);
  EXPECT_EQ(client.request.key(), "o");

  Borrowed set("ms abc 1 T9 q\r\nx\r\n");
  EXPECT_EQ(set.sent(), "ms abc 1 T9  \r\nx\r\n");
  EXPECT_EQ(set.request.trim_key_right(1), EditError::None);
  EXPECT_EQ(set.sent(), "ms ab  1 T9  \r\nx\r\n");
  EXPECT_EQ(set.request.find_flag('T').text, "9");
  EXPECT_EQ(set.request.wire().keys, "ab");

  Borrowed none("stats\r\n");
  EXPECT_EQ(none.request.trim_key_left(0), EditError::Malformed);
}

TEST(RouteRequest, TrimsKeysOfLinesThatAreTooLongForEdits) {
  std::string line = "get prefix/first";
  while (line.size() < 2 * kEditedLineBytesMax) {
    line += " another-key";
  }
  Borrowed client(line + "\r\n");
  EXPECT_EQ(client.request.trim_key_left(7), EditError::None);
  EXPECT_EQ(client.sent().substr(0, 16), "get        first");
  EXPECT_EQ(client.request.set_token(2, "x"), EditError::TooLong);
}

TEST(RouteRequest, TakesOneLineOnly) {
  RouteRequest request;
  EXPECT_TRUE(request.assign("mg kept v\r\n", ""));
  for (const std::string_view line : {"mg foo v", "mg foo v\n", "bogus foo\r\n", "set foo 0 0\r\n",
                                      "mg a\nmg b\r\n", "mg a\r\nmg b\r\n", "\r\n", "", "mg\r\n"}) {
    EXPECT_FALSE(request.assign(line, "")) << line;
    EXPECT_EQ(request.key(), "kept");
  }
  EXPECT_FALSE(request.assign("mg " + std::string(kEditedLineBytesMax, 'k') + "\r\n", ""));
}

TEST(RouteRequest, TellsWhetherItsValueFitsItsLine) {
  const struct {
    const char* line;
    const char* value;
    bool is_consistent;
  } table[] = {
      {"ms k 5 T30\r\n", "hello\r\n", true}, {"ms k 4\r\n", "hello\r\n", false},
      {"ms k 6\r\n", "hello\r\n", false},    {"ms k 5\r\n", "", false},
      {"set k 0 0 0\r\n", "\r\n", true},     {"set k 0 0 0\r\n", "", false},
      {"set k 0 0 0\r\n", "x\r\n", false},   {"mg k v\r\n", "", true},
      {"mg k v\r\n", "x\r\n", false},        {"ms k 5\r\n", "hello!!", false},
  };
  for (const auto& row : table) {
    const std::string bytes = std::string(row.line) + row.value;
    RouteRequest assigned;
    ASSERT_TRUE(assigned.assign(row.line, row.value)) << row.line;
    EXPECT_EQ(assigned.is_consistent(), row.is_consistent) << bytes;
    EXPECT_EQ(assigned.value_with_end(), row.value);
    RouteRequest borrowed;
    ASSERT_TRUE(borrowed.borrow_text(bytes, std::string_view(row.line).size()));
    EXPECT_EQ(borrowed.is_consistent(), row.is_consistent) << bytes;
    EXPECT_EQ(borrowed.line_text().data(), bytes.data());
    EXPECT_EQ(borrowed.value_with_end(), row.value);
  }
}

TEST(RouteRequest, IsNotConsistentWhileItsValueIsStillComing) {
  const std::string head = "set k 0 0 100000\r\n";
  RouteRequest request;
  request.borrow(parse(head));
  EXPECT_FALSE(request.has_value());
  EXPECT_FALSE(request.is_consistent());
  EXPECT_FALSE(request.wire().has_complete_value);
  EXPECT_EQ(request.set_token(5, "100001"), EditError::Malformed);
  EXPECT_EQ(request.set_token(3, "7"), EditError::None);
  EXPECT_FALSE(request.wire().has_complete_value);
}

}  // namespace
}  // namespace kvferry::route
