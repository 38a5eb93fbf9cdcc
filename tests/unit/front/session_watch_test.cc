// Clients that read log streams, and clients that have to say who they are.
#include <memory>

#include "front/session.h"
#include "tests/unit/front/session_rig.h"

namespace kvferry::front {
namespace {

using test::Peer;
using watch::Stream;

base::WallTime clock_at_five() {
  return base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(base::Seconds(5)));
}

class SessionWatchTest : public SessionRig {
 protected:
  SessionWatchTest() {
    service_->close_all();
    rig_.run_turns(4);
    options_.allows_watch = true;
    hub_pointer_ = &hub_;
    make();
  }
  ~SessionWatchTest() override {
    service_->close_all();
    EXPECT_EQ(hub_.stats().watchers, 0U);
  }

  Peer& watcher(const std::string& streams) {
    Peer& client = connect();
    client.send("watch " + streams + "\r\n");
    expect_client(client, "OK\r\n");
    return client;
  }

  watch::Hub hub_{clock_at_five};
};

TEST_P(SessionWatchTest, LinesComeAsTheyAreWritten) {
  Peer& client = watcher("fetchers");
  hub_.write(Stream::Fetchers, "type=a");
  expect_client(client, "ts=5.0 gid=1 type=a\n");
  hub_.write(Stream::Fetchers, "type=b");
  hub_.write(Stream::Mutations, "type=nobody");
  hub_.write(Stream::Fetchers, "type=c");
  expect_client(client, "ts=5.0 gid=2 type=b\nts=5.0 gid=3 type=c\n");
}

TEST_P(SessionWatchTest, AWatcherSendsNothingMore) {
  Peer& client = connect();
  client.send("watch fetchers\r\nmn\r\nget a\r\n");
  expect_client(client, "OK\r\n");
  client.send("mn\r\n");
  settle();
  EXPECT_EQ(client.data, "");
  EXPECT_EQ(target_.count(), 0U);
  hub_.write(Stream::Fetchers, "type=a");
  expect_client(client, "ts=5.0 gid=1 type=a\n");
}

TEST_P(SessionWatchTest, RefusesAsMemcachedDoes) {
  Peer& client = connect();
  client.send("watch bogus\r\n");
  expect_client(client, "ERROR\r\n");
  client.send("mn\r\nwatch fetchers\r\n");
  expect_client(client, "MN\r\nERROR cannot pipeline other commands before watch\r\n");
  for (std::size_t i = 0; i < watch::kWatchersMax; ++i) {
    watcher("mut");
  }
  client.send("watch fetchers\r\n");
  expect_client(client, "WATCHER_TOO_MANY log watcher limit reached\r\n");
  client.send("mn\r\n");
  expect_client(client, "MN\r\n");
}

TEST_P(SessionWatchTest, IsRefusedWhereItIsNotAllowed) {
  options_.allows_watch = false;
  configure();
  Peer& client = connect();
  client.send("watch fetchers\r\nmn\r\n");
  expect_client(client, "CLIENT_ERROR watch commands not allowed\r\nMN\r\n");
}

TEST_P(SessionWatchTest, AWatcherThatLeavesIsForgotten) {
  Peer& client = watcher("fetchers");
  client.stream.reset();
  ASSERT_TRUE(run_until([&] { return hub_.stats().watchers == 0; }));
  hub_.write(Stream::Fetchers, "type=a");
  settle();
}

TEST_P(SessionWatchTest, DrainingEndsWatchers) {
  Peer& client = watcher("fetchers");
  service_->drain();
  expect_closed(client);
}

TEST_P(SessionWatchTest, ConnectionsAreReported) {
  Peer& client = watcher("connevents");
  Peer& other = connect();
  ASSERT_TRUE(run_until([&] { return client.data.find('\n') != std::string::npos; }));
  EXPECT_EQ(client.take().find("ts=5.0 gid=1 type=conn_new rip=127.0.0.1 rport="), 0U);
  other.stream.reset();
  ASSERT_TRUE(run_until([&] { return client.data.find('\n') != std::string::npos; }));
  const std::string line = client.take();
  EXPECT_EQ(line.find("ts=5.0 gid=2 type=conn_close rip=127.0.0.1 rport="), 0U) << line;
  EXPECT_NE(line.find(" reason="), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(Engines, SessionWatchTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

class SessionAuthenticationTest : public SessionRig {
 protected:
  SessionAuthenticationTest() {
    options_.credentials =
        std::make_shared<const Credentials>(*Credentials::parse("alice:secret\n"));
    configure();
  }
};

TEST_P(SessionAuthenticationTest, OpensToWhomTheFileNames) {
  Peer& client = connect();
  client.send("set x 0 0 11\r\nalice wrong\r\n");
  expect_client(client, "CLIENT_ERROR authentication failure\r\n");
  client.send("set x 0 0 12\r\nalice secret\r\nmn\r\nget a\r\n");
  expect_client(client, "STORED\r\nMN\r\n");
  ASSERT_TRUE(wait_for_requests(1));
  EXPECT_EQ(target_.held[0].text, "get a\r\n");
}

TEST_P(SessionAuthenticationTest, ClosesOnAnythingElse) {
  for (const char* request : {"get a\r\n", "mn\r\n", "stats\r\n", "ms x 12\r\nalice secret\r\n"}) {
    Peer& client = connect();
    client.send(request);
    expect_client(client, "CLIENT_ERROR unauthenticated\r\n");
    expect_closed(client);
  }
  EXPECT_EQ(target_.count(), 0U);
}

TEST_P(SessionAuthenticationTest, ClosesOnAValueThatIsStreamed) {
  Peer& client = connect();
  client.send("set x 0 0 100000\r\n");
  expect_client(client, "CLIENT_ERROR unauthenticated\r\n");
  expect_closed(client);
}

INSTANTIATE_TEST_SUITE_P(Engines, SessionAuthenticationTest, testing::ValuesIn(test::kEngines),
                         test::name_of);

}  // namespace
}  // namespace kvferry::front
