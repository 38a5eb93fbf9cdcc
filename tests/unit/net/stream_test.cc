#include "net/stream.h"

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <random>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/net/loop_fixture.h"

namespace kvferry::net {
namespace {

/// Bytes that repeat with a period that no buffer size divides, so that lost or swapped parts show.
std::string pattern(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>('a' + (i * 7 + i / 251) % 23);
  }
  return bytes;
}

/// The next close() of `fd` sends a reset.
void reset_on_close(int fd) {
  const linger option{1, 0};
  ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &option, sizeof(option)), 0);
}

using StreamTest = PairTest;

TEST_P(StreamTest, EchoesWhatIsWritten) {
  acceptor_.echoes = server().echoes = true;
  client_.stream->write("hello ");
  client_.stream->write("there");
  ASSERT_TRUE(run_until([&] { return client_.data.size() == 11; }));
  EXPECT_EQ(client_.data, "hello there");
  EXPECT_EQ(client_.stream->output_bytes(), 0U);
}

TEST_P(StreamTest, SendsWhatWasWrittenBeforeTheConnect) {
  Recorder early;
  connect(early, listener_->address());
  early.stream->write("early");
  ASSERT_TRUE(run_until(
      [&] { return acceptor_.accepted.size() == 2 && acceptor_.accepted[1]->data == "early"; }));
}

TEST_P(StreamTest, AcceptedAndConnectedSocketsDoNotDelaySmallPackets) {
  for (const int fd : {server().stream->fd(), client_.stream->fd()}) {
    int value = 0;
    socklen_t size = sizeof(value);
    ASSERT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
    EXPECT_EQ(value, 1);
  }
  EXPECT_EQ(acceptor_.peers.at(0).to_string().substr(0, 10), "127.0.0.1:");
}

TEST_P(StreamTest, MovesMegabytesBothWaysInOrder) {
  const std::string bytes = pattern(3'000'017);
  client_.stream->write(bytes);
  server().stream->write(bytes);
  ASSERT_TRUE(run_until(
      [&] { return client_.data.size() >= bytes.size() && server().data.size() >= bytes.size(); }));
  EXPECT_TRUE(client_.data == bytes);
  EXPECT_TRUE(server().data == bytes);
}

TEST_P(StreamTest, ManyWritesOfAllSizesArriveInOrder) {
  std::mt19937 random(7);
  const std::string bytes = pattern(400'000);
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t size = std::min<std::size_t>(random() % 5000, bytes.size() - at);
    client_.stream->write(std::string_view(bytes).substr(at, size));
    at += size;
    loop_->run_turn(false);
  }
  ASSERT_TRUE(run_until([&] { return server().data.size() >= bytes.size(); }));
  EXPECT_TRUE(server().data == bytes);
}

TEST_P(StreamTest, PausedReaderStopsTheWriterAndLosesNothing) {
  const std::string bytes = pattern(12'000'000);
  server().stream->pause_reading();
  client_.stream->write(bytes);
  run_for(base::Millis(30));
  EXPECT_EQ(server().data.size(), 0U);
  EXPECT_GT(client_.stream->output_bytes(), 0U);
  server().stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return server().data.size() >= bytes.size(); }));
  EXPECT_TRUE(server().data == bytes);
}

TEST_P(StreamTest, PausingInEachCallDeliversEverythingOnce) {
  const std::string bytes = pattern(2'000'000);
  Recorder& reader = server();
  // Recorder::on_data() fails the test when a paused stream is given bytes.
  reader.then_data = [&](std::string_view) { reader.stream->pause_reading(); };
  client_.stream->write(bytes);
  ASSERT_TRUE(run_until([&] {
    if (reader.stream->is_reading_paused()) {
      reader.stream->resume_reading();
    }
    return reader.data.size() >= bytes.size();
  }));
  EXPECT_TRUE(reader.data == bytes);
}

TEST_P(StreamTest, PauseAndResumeAtRandomDeliversEverythingOnce) {
  std::mt19937 random(11);
  const std::string bytes = pattern(4'000'000);
  Recorder& reader = server();
  reader.then_data = [&](std::string_view) {
    if (random() % 3 == 0) {
      reader.stream->pause_reading();
    }
  };
  client_.stream->write(bytes);
  ASSERT_TRUE(run_until([&] {
    if (reader.stream->is_reading_paused() && random() % 2 == 0) {
      reader.stream->resume_reading();
      if (random() % 4 == 0) {
        reader.stream->pause_reading();
        reader.stream->resume_reading();
      }
    }
    if (reader.stream->is_reading_paused()) {
      loop_->run_turn(false);
      reader.stream->resume_reading();
    }
    return reader.data.size() >= bytes.size();
  }));
  EXPECT_TRUE(reader.data == bytes);
}

TEST_P(StreamTest, EndOfAPausedStreamComesAfterItsBytes) {
  Recorder& reader = server();
  reader.stream->pause_reading();
  loop_->run_turn(false);
  client_.stream->write("last words");
  client_.stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return client_.closes == 1; }));
  client_.stream.reset();
  run_for(base::Millis(10));
  EXPECT_EQ(reader.ends, 0);
  EXPECT_EQ(reader.data, "");
  reader.stream->resume_reading();
  ASSERT_TRUE(run_until([&] { return reader.ends == 1; }));
  EXPECT_EQ(reader.data, "last words");
}

TEST_P(StreamTest, HalfClosedPeerCanStillBeAnswered) {
  client_.stream->write("question");
  ASSERT_TRUE(run_until([&] { return server().data == "question"; }));
  ASSERT_EQ(shutdown(client_.stream->fd(), SHUT_WR), 0);
  ASSERT_TRUE(run_until([&] { return server().ends == 1; }));
  run_for(base::Millis(10));
  EXPECT_EQ(server().closes, 0);
  server().stream->write("answer");
  ASSERT_TRUE(run_until([&] { return client_.data == "answer"; }));
  server().stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return client_.ends == 1; }));
  EXPECT_EQ(server().ends, 1);
  EXPECT_EQ(server().closes, 1);
  EXPECT_EQ(server().error, 0);
}

TEST_P(StreamTest, AnEndedStreamDoesNotKeepTheLoopAwake) {
  ASSERT_EQ(shutdown(client_.stream->fd(), SHUT_WR), 0);
  ASSERT_TRUE(run_until([&] { return server().ends == 1; }));
  EXPECT_LE(turns_in(base::Millis(60)), 40);
  EXPECT_EQ(server().ends, 1);
}

TEST_P(StreamTest, ResetIsReported) {
  reset_on_close(client_.stream->fd());
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return server().closes == 1; }));
  EXPECT_EQ(server().error, ECONNRESET);
}

TEST_P(StreamTest, ResetOfAPausedStreamNeitherSpinsNorHangs) {
  Recorder& reader = server();
  reader.stream->pause_reading();
  loop_->run_turn(false);
  client_.stream->write("unread");
  loop_->run_turn(false);
  reset_on_close(client_.stream->fd());
  client_.stream.reset();
  EXPECT_LE(turns_in(base::Millis(60)), 40);
  if (reader.closes == 0) {
    reader.stream->resume_reading();
  }
  ASSERT_TRUE(run_until([&] { return reader.closes == 1; }));
  EXPECT_EQ(reader.error, ECONNRESET);
}

TEST_P(StreamTest, WritingToADeadPeerClosesWithoutASignal) {
  Recorder& writer = server();
  writer.stream->pause_reading();
  loop_->run_turn(false);
  reset_on_close(client_.stream->fd());
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] {
    if (writer.closes == 0) {
      writer.stream->write("anybody there");
    }
    return writer.closes == 1;
  }));
  EXPECT_TRUE(writer.error == ECONNRESET || writer.error == EPIPE) << writer.error;
  writer.stream->write("after the end");
  run_for(base::Millis(5));
  EXPECT_EQ(writer.closes, 1);
}

TEST_P(StreamTest, CloseAfterOutputSendsAllOfALargeOutput) {
  const std::string bytes = pattern(5'000'000);
  server().stream->write(bytes);
  server().stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return client_.ends == 1; }));
  EXPECT_TRUE(client_.data == bytes);
  ASSERT_TRUE(run_until([&] { return server().closes == 1; }));
  EXPECT_EQ(server().error, 0);
  EXPECT_EQ(server().ends, 0);
}

TEST_P(StreamTest, TheLastReplySurvivesInputThatNobodyReads) {
  Recorder& last = server();
  last.then_data = [&](std::string_view) {
    last.then_data = nullptr;
    last.stream->write("ERROR\r\n");
    last.stream->close_after_output();
    last.stream->pause_reading();
  };
  last.then_closed = [&] { last.stream.reset(); };
  client_.stream->write(pattern(2'000'000));
  ASSERT_TRUE(run_until([&] { return client_.ends == 1 || client_.closes == 1; }));
  EXPECT_EQ(client_.data, "ERROR\r\n");
  EXPECT_EQ(client_.closes, 0);
}

TEST_P(StreamTest, ALingeringStreamGoesAwayWithinTwoSeconds) {
  server().stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return server().closes == 1; }));
  server().stream.reset();
  // The client never closes its side.
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 1; }));
}

TEST_P(StreamTest, WhatAnOwnerLeavesBehindIsSent) {
  const std::string bytes = pattern(5'000'000);
  server().stream->write(bytes);
  Stream::leave(std::move(server().stream));
  ASSERT_TRUE(run_until([&] { return client_.ends == 1; }));
  EXPECT_TRUE(client_.data == bytes);
  EXPECT_EQ(server().closes, 0);
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));
}

TEST_P(StreamTest, WhatNobodyReadsIsNotKeptForALeftStream) {
  client_.stream->pause_reading();
  run_for(base::Millis(20));
  server().stream->write(pattern(20'000'000));
  Stream::leave(std::move(server().stream));
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 1; }));
  ASSERT_TRUE(run_until([&] { return budget_.used_bytes() < 10'000'000; }));
}

TEST_P(StreamTest, LeavingAStreamThatIsClosedIsDroppingIt) {
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return server().ends == 1 || server().closes == 1; }));
  server().stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return server().closes == 1; }));
  Stream::leave(std::move(server().stream));
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));
}

TEST_P(StreamTest, CloseAfterOutputWhileConnectingStillSends) {
  Recorder hasty;
  connect(hasty, listener_->address());
  hasty.stream->write("bye");
  hasty.stream->close_after_output();
  ASSERT_TRUE(run_until([&] { return hasty.closes == 1; }));
  ASSERT_TRUE(run_until(
      [&] { return acceptor_.accepted.size() == 2 && acceptor_.accepted[1]->ends == 1; }));
  EXPECT_EQ(acceptor_.accepted[1]->data, "bye");
}

TEST_P(StreamTest, DrainNoticeComesOnceForEachTimeOutputWasHigh) {
  client_.stream->set_drain_notice(100'000);
  client_.stream->write(pattern(50'000));
  ASSERT_TRUE(run_until([&] { return server().data.size() == 50'000; }));
  EXPECT_EQ(client_.drained, 0);
  client_.stream->write(pattern(8'000'000));
  ASSERT_TRUE(run_until([&] { return server().data.size() == 8'050'000; }));
  ASSERT_TRUE(run_until([&] { return client_.drained == 1; }));
  client_.stream->write(pattern(8'000'000));
  ASSERT_TRUE(run_until([&] { return client_.drained == 2; }));
}

TEST_P(StreamTest, IdleStreamsHoldNoBlocks) {
  client_.stream->write(pattern(300'000));
  ASSERT_TRUE(run_until([&] { return server().data.size() == 300'000; }));
  for (int i = 0; i < 3; ++i) {
    loop_->run_turn(false);
  }
  EXPECT_EQ(loop_->blocks().live_bytes(), 0U);
}

TEST_P(StreamTest, StreamsMayBeDroppedInOnData) {
  Recorder& dropper = server();
  dropper.then_data = [&](std::string_view) {
    dropper.stream->write("never sent");
    dropper.stream.reset();
  };
  client_.stream->write(pattern(500'000));
  ASSERT_TRUE(run_until([&] { return client_.ends + client_.closes > 0; }));
  EXPECT_EQ(client_.data, "");
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));
}

TEST_P(StreamTest, StreamsMayBeDroppedInOnEndOnClosedAndOnDrained) {
  Recorder& first = server();
  first.then_end = [&] { first.stream.reset(); };
  client_.then_end = [&] { client_.stream.reset(); };
  ASSERT_EQ(shutdown(client_.stream->fd(), SHUT_WR), 0);
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));

  open_pair();
  Recorder& second = server();
  second.then_closed = [&] { second.stream.reset(); };
  reset_on_close(client_.stream->fd());
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));

  open_pair();
  Recorder& third = server();
  third.stream->set_drain_notice(1000);
  third.then_drained = [&] { third.stream.reset(); };
  third.stream->write(pattern(9000));
  ASSERT_TRUE(run_until([&] { return third.drained == 1; }));
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 0; }));
}

TEST_P(StreamTest, StreamsMayBeDroppedInOnConnectedAndAtOnce) {
  Recorder other;
  other.then_connected = [&] { other.stream.reset(); };
  connect(other, listener_->address());
  ASSERT_TRUE(run_until([&] { return other.is_connected; }));
  EXPECT_EQ(other.stream, nullptr);
  Recorder never;
  connect(never, listener_->address());
  never.stream.reset();
  run_for(base::Millis(10));
  EXPECT_FALSE(never.is_connected);
  EXPECT_EQ(never.closes, 0);
}

TEST_P(StreamTest, OneStreamMayDropAnotherWithEventsInTheSameTurn) {
  Recorder other;
  connect(other, listener_->address());
  ASSERT_TRUE(run_until([&] { return other.is_connected && acceptor_.accepted.size() == 2; }));
  Recorder& left = *acceptor_.accepted[0];
  Recorder& right = *acceptor_.accepted[1];
  left.then_data = [&](std::string_view) { right.stream.reset(); };
  right.then_data = [&](std::string_view) { left.stream.reset(); };
  client_.stream->write("x");
  other.stream->write("y");
  ASSERT_TRUE(run_until([&] { return left.bytes + right.bytes > 0; }));
  run_for(base::Millis(10));
  EXPECT_EQ(left.bytes + right.bytes, 1U);
}

TEST_P(StreamTest, DroppingAStreamWithStuckOutputFreesItsBlocks) {
  server().stream->pause_reading();
  loop_->run_turn(false);
  client_.stream->write(pattern(12'000'000));
  run_for(base::Millis(20));
  EXPECT_GT(client_.stream->output_bytes(), 0U);
  client_.stream.reset();
  ASSERT_TRUE(run_until([&] { return loop_->blocks().live_bytes() == 0; }));
}

TEST_P(StreamTest, ReopensManyTimesWithoutLeavingAnythingBehind) {
  for (int i = 0; i < 200; ++i) {
    Recorder visitor;
    connect(visitor, listener_->address());
    visitor.stream->write("ping");
    ASSERT_TRUE(run_until([&] { return acceptor_.accepted.back()->data == "ping"; }));
    visitor.stream.reset();
    Recorder& last = server();
    ASSERT_TRUE(run_until([&] { return last.ends == 1; }));
    last.stream.reset();
    acceptor_.accepted.back()->data.clear();
  }
  ASSERT_TRUE(run_until([&] { return loop_->stream_count() == 2; }));
  EXPECT_EQ(loop_->blocks().live_bytes(), 0U);
}

TEST_P(StreamTest, ALoopMayEndWithHullsThatStillLinger) {
  server().stream->pause_reading();
  client_.stream->write(pattern(12'000'000));
  loop_->run_turn(false);
  client_.stream.reset();
  server().stream->close_after_output();
  loop_->run_turn(false);
  acceptor_.accepted.clear();
  listener_.reset();
  loop_.reset();
  EXPECT_EQ(budget_.used_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Engines, StreamTest, testing::ValuesIn(kEngines), engine_name_of);

}  // namespace
}  // namespace kvferry::net
