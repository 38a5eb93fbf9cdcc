#include "pool/multiget.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <sstream>

#include "tests/unit/pool/multiget_rig.h"

namespace kvferry::pool {
namespace {

using test::Outcome;

constexpr const char* kLostLine = "SERVER_ERROR kvferry: connection to backend lost\r\n";

class MultiGetTest : public MultiGetRig {};

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

TEST_P(MultiGetTest, MergesInTheOrderOfTheRequestWithDuplicatesAndMisses) {
  make(2);
  const std::string a = key(0);
  const std::string b = key(1);
  const std::string c = key(0, 1);
  const std::string d = key(1, 1);
  Outcome& outcome = get({a, b, c, b, d});
  expect_received(0, "get " + a + " " + c + "\r\n");
  expect_received(1, "get " + b + " " + b + " " + d + "\r\n");
  reply(1, item(b, "B") + item(b, "B") + "END\r\n");  // d is a miss.
  rig_.run_for(base::Millis(10));
  EXPECT_EQ(outcome.parts, 0) << "passed on before every part was complete";
  reply(0, item(a, "A") + item(c, "C") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item(a, "A") + item(b, "B") + item(c, "C") + item(b, "B") + "END\r\n");
  EXPECT_EQ(outcome.code, memcache::ReplyCode::Value);
}

TEST_P(MultiGetTest, ABackendMayAnswerDuplicatesOnce) {
  make(2);
  Outcome& outcome = get({key(0), key(1), key(0)});
  expect_received(0, "get " + key(0) + " " + key(0) + "\r\n");
  expect_received(1, "get " + key(1) + "\r\n");
  reply(0, item(key(0), "A") + "END\r\n");
  reply(1, "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item(key(0), "A") + "END\r\n");
}

TEST_P(MultiGetTest, AllMissesAreAnEnd) {
  make(3);
  Outcome& outcome = get({key(0), key(1), key(2)}, "gat 30");
  for (const std::size_t i : {0U, 1U, 2U}) {
    expect_received(i, "gat 30 " + key(i) + "\r\n");
    reply(i, "END\r\n");
  }
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, "END\r\n");
  EXPECT_EQ(outcome.code, memcache::ReplyCode::End);
}

TEST_P(MultiGetTest, KeysOfOneBackendGoThereAsTheyCame) {
  make(2);
  Outcome& outcome = sink_.send(*pool_, "gets  " + key(1) + "   " + key(1, 1) + "\r\n");
  expect_received(1, "gets  " + key(1) + "   " + key(1, 1) + "\r\n");
  reply(1, "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_TRUE(fakes_[0]->peers.empty());
}

/// memcached closes a connection on a longer line of gat of which it has read only a part.
TEST_P(MultiGetTest, LongLinesOfGatAreCut) {
  make(2);
  std::vector<std::string> keys;
  std::vector<std::string> of_first;
  for (std::size_t i = 0; i < 400; ++i) {
    keys.push_back(key(i % 2, i / 2));
    if (i % 2 == 0) {
      of_first.push_back(keys.back());
    }
  }
  for (const std::string command : {"gat  0030", "gats 0030"}) {
    SCOPED_TRACE(command);
    Outcome& outcome = get(keys, command);
    std::vector<std::size_t> line_count(2);
    std::vector<std::string> texts(2);
    const auto has_all = [&] {
      for (const std::size_t i : {0U, 1U}) {
        texts[i] += fakes_[i]->peers.empty() ? "" : fakes_[i]->peers.back()->take();
      }
      return std::ranges::all_of(texts, [](const std::string& text) {
        return std::ranges::count(text, 'k') == 200 && text.ends_with("\r\n");
      });
    };
    ASSERT_TRUE(run_until(has_all));
    std::vector<std::string> asked_of_first;
    for (const std::size_t i : {0U, 1U}) {
      std::istringstream lines(texts[i]);
      for (std::string line; std::getline(lines, line); ++line_count[i]) {
        EXPECT_LE(line.size() + 1, kTouchLineBytesMax);
        std::istringstream words(line);
        std::string head;
        std::string exptime;
        words >> head >> exptime;
        EXPECT_EQ(head, command.substr(0, command.find(' ')));
        EXPECT_EQ(exptime, "0030");
        if (i == 0) {
          std::copy(std::istream_iterator<std::string>(words), {},
                    std::back_inserter(asked_of_first));
        }
      }
      EXPECT_GT(line_count[i], 1U);
    }
    EXPECT_EQ(asked_of_first, of_first);
    // A hit in the first line of the first backend and in the last line of the second.
    reply(1, repeated("END\r\n", line_count[1] - 1) + item(keys.back(), "last") + "END\r\n");
    reply(0, item(keys.front(), "first") + repeated("END\r\n", line_count[0]));
    ASSERT_TRUE(wait_for(outcome));
    EXPECT_EQ(outcome.bytes, item(keys.front(), "first") + item(keys.back(), "last") + "END\r\n");
  }
}

TEST_P(MultiGetTest, BlanksOfALongLineOfGatStayBehind) {
  make(1);
  const std::string blanks(3000, ' ');
  Outcome& one = get({blanks + key(0) + blanks}, "gat" + blanks + "30");
  expect_received(0, "gat 30 " + key(0) + "\r\n");
  reply(0, item(key(0), "A") + "END\r\n");
  ASSERT_TRUE(wait_for(one));
  EXPECT_EQ(one.bytes, item(key(0), "A") + "END\r\n");
  Outcome& two = get({blanks + key(0), key(0, 1)}, "gats 30");
  expect_received(0, "gats 30 " + key(0) + " " + key(0, 1) + "\r\n");
  reply(0, "END\r\n");
  ASSERT_TRUE(wait_for(two));
  EXPECT_EQ(two.bytes, "END\r\n");
}

TEST_P(MultiGetTest, ItemsCutAnywhereAreJoined) {
  make(2);
  const std::string text = item(key(0), "first") + item(key(0, 1), "") + "END\r\n";
  for (std::size_t at = 1; at < text.size(); at += 3) {
    Outcome& outcome = get({key(0), key(1), key(0, 1)});
    expect_received(0, "get " + key(0) + " " + key(0, 1) + "\r\n");
    expect_received(1, "get " + key(1) + "\r\n");
    reply(1, item(key(1), "x") + "END\r\n");
    reply(0, text.substr(0, at));
    rig_.run_turns(4);
    reply(0, text.substr(at));
    ASSERT_TRUE(wait_for(outcome));
    ASSERT_EQ(outcome.bytes,
              item(key(0), "first") + item(key(1), "x") + item(key(0, 1), "") + "END\r\n");
  }
}

/// One part fails by an error line of its backend, after a first item; the other is well.
class PartialTest : public MultiGetTest {
 protected:
  std::string answer_of(OnPartial on_partial, std::string_view failing, bool cuts) {
    options_.on_partial = on_partial;
    make(2);
    Outcome& outcome = get({key(0), key(1), key(0, 1), key(1, 1)});
    expect_received(0, "get " + key(0) + " " + key(0, 1) + "\r\n");
    expect_received(1, "get " + key(1) + " " + key(1, 1) + "\r\n");
    reply(0, item(key(0), "A") + item(key(0, 1), "C") + "END\r\n");
    reply(1, failing);
    if (cuts) {
      EXPECT_TRUE(run_until([&] { return fakes_[1]->peer().stream->output_bytes() == 0; }));
      rig_.run_for(base::Millis(10));
      cut(1);
    }
    EXPECT_TRUE(wait_for(outcome));
    EXPECT_FALSE(outcome.is_broken);
    return outcome.bytes;
  }
  const std::string kOom = "SERVER_ERROR out of memory\r\n";
  std::string well_items() const { return item(key(0), "A") + item(key(0, 1), "C"); }
};

TEST_P(PartialTest, ErrorAnswersOneLine) {
  EXPECT_EQ(answer_of(OnPartial::Error, kOom, false), kOom);
}
TEST_P(PartialTest, NullCountsTheFailedKeysAsMisses) {
  const std::string got = answer_of(OnPartial::Null, kOom, false);
  EXPECT_EQ(got, well_items() + "END\r\n");
}
TEST_P(PartialTest, ElementPutsALineInPlaceOfEachFailedKey) {
  const std::string got = answer_of(OnPartial::Element, kOom, false);
  EXPECT_EQ(got, item(key(0), "A") + kOom + item(key(0, 1), "C") + kOom + "END\r\n");
}
TEST_P(PartialTest, ErrorOnACutItemIsALine) {
  EXPECT_EQ(answer_of(OnPartial::Error, "VALUE k 0 100\r\ncut", true).substr(0, 13),
            "SERVER_ERROR ");
}
INSTANTIATE_TEST_SUITE_P(Engines, PartialTest, testing::Values(test::kEpoll), test::name_of);

/// The connection of one part ends inside an item of which nothing was passed on.
class CutTest : public MultiGetTest {
 protected:
  std::string answer_of(OnPartial on_partial) {
    options_.on_partial = on_partial;
    make(2);
    Outcome& outcome = get({key(1), key(0), key(1, 1)});  // The cut one is the first of all.
    expect_received(0, "get " + key(0) + "\r\n");
    expect_received(1, "get " + key(1) + " " + key(1, 1) + "\r\n");
    reply(0, item(key(0), "A") + "END\r\n");
    reply(1, "VALUE " + key(1) + " 0 100\r\nonly this");
    rig_.run_for(base::Millis(20));
    cut(1);
    EXPECT_TRUE(wait_for(outcome));
    EXPECT_FALSE(outcome.is_broken) << "nothing that cannot be completed was passed on";
    return outcome.bytes;
  }
};
TEST_P(CutTest, Error) {
  EXPECT_EQ(answer_of(OnPartial::Error), kLostLine);
}
TEST_P(CutTest, Null) {
  const std::string got = answer_of(OnPartial::Null);
  EXPECT_EQ(got, item(key(0), "A") + "END\r\n");
}
TEST_P(CutTest, Element) {
  const std::string got = answer_of(OnPartial::Element);
  EXPECT_EQ(got, kLostLine + item(key(0), "A") + kLostLine + "END\r\n");
}
INSTANTIATE_TEST_SUITE_P(Engines, CutTest, testing::Values(test::kEpoll), test::name_of);

TEST_P(MultiGetTest, APartThatFailsAtOnceIsMergedToo) {
  options_.on_partial = OnPartial::Null;
  options_.max_inflight = 1;
  make(2);
  Outcome& first = sink_.send(*pool_, "get " + key(1) + "\r\n");  // Fills the link of backend 1.
  Outcome& outcome = get({key(0), key(1)});
  expect_received(0, "get " + key(0) + "\r\n");
  reply(0, item(key(0), "A") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item(key(0), "A") + "END\r\n");
  EXPECT_FALSE(first.is_done);
}

TEST_P(MultiGetTest, AllPartsFailingAtOnceAnswerFromWithinSend) {
  make(2);
  snapshot_ = nullptr;
  auto changed = std::make_shared<PoolSnapshot>(*snapshot());
  changed->addresses = {net::Address(), net::Address()};
  pool_->apply(changed);
  snapshot_ = changed;
  Outcome& outcome = get({key(0), key(1)});
  EXPECT_TRUE(outcome.is_done);
  EXPECT_EQ(
      outcome.bytes,
      "SERVER_ERROR kvferry: the name of the backend has no address (pool p, backend b0)\r\n");
}

TEST_P(MultiGetTest, KeysThatWereNotAskedForFailThePart) {
  make(2);
  Outcome& outcome = get({key(0), key(1)});
  expect_received(0, "get " + key(0) + "\r\n");
  expect_received(1, "get " + key(1) + "\r\n");
  reply(0, item(key(0), "A") + "END\r\n");
  reply(1, item("stranger", "secret") + item(key(1), "B") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, "SERVER_ERROR kvferry: backend sent a key that was not asked for\r\n");
}

TEST_P(MultiGetTest, ItemsInAnotherOrderFailThePart) {
  options_.on_partial = OnPartial::Null;
  make(2);
  Outcome& outcome = get({key(0), key(0, 1), key(1)});
  expect_received(0, "get " + key(0) + " " + key(0, 1) + "\r\n");
  expect_received(1, "get " + key(1) + "\r\n");
  reply(0, item(key(0, 1), "C") + item(key(0), "A") + "END\r\n");
  reply(1, item(key(1), "B") + "END\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes, item(key(0, 1), "C") + item(key(1), "B") + "END\r\n");
}

TEST_P(MultiGetTest, AnErrorLineBehindAnItemFailsTheKeysAfterIt) {
  options_.on_partial = OnPartial::Element;
  make(2);
  Outcome& outcome = get({key(0), key(1), key(1, 1), key(1, 2)});
  expect_received(0, "get " + key(0) + "\r\n");
  expect_received(1, "get " + key(1) + " " + key(1, 1) + " " + key(1, 2) + "\r\n");
  reply(0, "END\r\n");
  reply(1, item(key(1), "B") + "SERVER_ERROR later\r\n");
  ASSERT_TRUE(wait_for(outcome));
  EXPECT_EQ(outcome.bytes,
            item(key(1), "B") + "SERVER_ERROR later\r\nSERVER_ERROR later\r\nEND\r\n");
}

TEST_P(MultiGetTest, HundredsOfKeysInAnyOrder) {
  make(3);
  for (auto& fake : fakes_) {
    fake->on_input = [](test::Peer& peer) {
      std::size_t end = 0;
      while ((end = peer.data.find("\r\n")) != std::string::npos) {
        std::string line = peer.data.substr(4, end - 4);
        peer.data.erase(0, end + 2);
        std::string all;
        for (std::size_t at = 0; at < line.size();) {
          const std::size_t blank = std::min(line.find(' ', at), line.size());
          const std::string text = line.substr(at, blank - at);
          if (text.back() != '7') {
            all += item(text, "v" + text);
          }
          at = blank + 1;
        }
        peer.send(all + "END\r\n");
      }
    };
  }
  std::mt19937 random(3);
  // Small ones in a small block, larger ones in a large block, the last on the heap.
  for (const std::size_t count : {5U, 40U, 300U, 3000U}) {
    std::vector<std::string> keys;
    std::string wanted;
    for (std::size_t i = 0; i < count; ++i) {
      keys.push_back("key" + std::to_string(random() % (2 * count)));
      if (keys.back().back() != '7') {
        wanted += item(keys.back(), "v" + keys.back());
      }
    }
    Outcome& outcome = get(keys);
    ASSERT_TRUE(wait_for(outcome));
    ASSERT_TRUE(outcome.bytes == wanted + "END\r\n") << count;
  }
}

TEST_P(MultiGetTest, TheRoomForThePlacesOfVeryManyKeysIsGivenBack) {
  PoolGets multigets(loop(), calls_, rig_.budget);
  make(2);
  for (const bool has_one_server : {false, true}) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (std::size_t i = 0; i < 2; ++i) {
      backends.push_back(
          std::make_unique<Backend>(Backend::Setup{.options = &snapshot_->options,
                                                   .server = snapshot_->options.servers[i],
                                                   .address = snapshot_->addresses[i],
                                                   .health = snapshot_->health[i]},
                                    loop(), events_, 7));
    }
    const auto placement = Placement::make(snapshot_->options.placement, snapshot_->options.servers,
                                           {true, !has_one_server})
                               .value();
    for (const std::size_t count :
         {kPlacesKeptMax - 1, kPlacesKeptMax, kPlacesKeptMax + 1, 40 * kPlacesKeptMax}) {
      std::string line = "get";
      for (std::size_t i = 0; i < count; ++i) {
        line += " k" + std::to_string(i);
      }
      line += "\r\n";
      memcache::RequestParser parser{memcache::ParserLimits{}};
      const auto parsed = parser.parse(line);
      ASSERT_TRUE(parsed.is_done());
      ASSERT_EQ(parsed.value().key_count, count);
      Outcome& outcome = sink_.make();
      std::uint64_t random = 1;
      ASSERT_TRUE(multigets.start(*outcome.call, parsed.value(), *placement, backends,
                                  OnPartial::Error, random));
      EXPECT_LE(multigets.places_kept(), 2 * kPlacesKeptMax) << count;
      for (auto& backend : backends) {
        backend->shut();
      }
      EXPECT_TRUE(outcome.is_done);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, MultiGetTest, testing::ValuesIn(test::kEngines), test::name_of);

}  // namespace
}  // namespace kvferry::pool
