#include "net/loop.h"

#include <atomic>
#include <cerrno>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "net/socket.h"
#include "net/uring_ring.h"
#include "tests/unit/net/loop_fixture.h"

namespace kvferry::net {
namespace {

TEST_P(LoopTest, SaysWhichEngineItIs) {
  EXPECT_EQ(loop_->engine_name(), GetParam().io == Io::Epoll ? "epoll" : "io_uring");
  EXPECT_EQ(loop_->fallback_reason(), "");
}

TEST_P(LoopTest, MessagesOfOneThreadRunInOrderOnTheLoopsThread) {
  constexpr int kMessages = 5000;
  int seen = 0;
  std::thread poster([&] {
    for (int i = 0; i < kMessages; ++i) {
      loop_->post([&, i] { EXPECT_EQ(seen++, i); });
    }
    loop_->post([&] { loop_->stop(); });
  });
  loop_->run();
  poster.join();
  EXPECT_EQ(seen, kMessages);
}

TEST_P(LoopTest, MessagesOfManyThreadsAllRun) {
  constexpr int kThreads = 4;
  constexpr int kMessages = 2000;
  int seen = 0;
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&] {
      for (int i = 0; i < kMessages; ++i) {
        loop_->post([&] { ++seen; });
      }
    });
  }
  ASSERT_TRUE(run_until([&] { return seen == kThreads * kMessages; }));
  for (std::thread& poster : posters) {
    poster.join();
  }
}

TEST_P(LoopTest, AMessageMayPostAnother) {
  int depth = 0;
  std::function<void()> again = [&] {
    if (++depth < 50) {
      loop_->post(again);
    }
  };
  loop_->post(again);
  ASSERT_TRUE(run_until([&] { return depth == 50; }));
}

TEST_P(LoopTest, StopsFromAnotherThreadAndRunsAgain) {
  for (int i = 0; i < 3; ++i) {
    std::thread stopper([&] { loop_->stop(); });
    loop_->run();
    stopper.join();
  }
  SUCCEED();
}

TEST_P(LoopTest, RunsOnAnotherThreadThanTheOneThatOpenedIt) {
  std::atomic<bool> ran{false};
  Acceptor acceptor;
  auto listener = listen(loopback(), acceptor);
  Recorder client;
  std::thread worker([&] {
    connect(client, listener->address());
    ASSERT_TRUE(run_until([&] { return client.is_connected && !acceptor.accepted.empty(); }));
    client.stream.reset();
    acceptor.accepted.clear();
    loop_->post([&] {
      ran = true;
      loop_->stop();
    });
    loop_->run();
  });
  worker.join();
  EXPECT_TRUE(ran);
}

TEST_P(LoopTest, WhatIsPostedToALoopThatEndsIsRunOrDropped) {
  const std::shared_ptr<Mailbox> mailbox = loop_->mailbox();
  const auto held = std::make_shared<int>(0);
  std::atomic<bool> is_posting{true};
  std::atomic<int> posted{0};
  std::thread poster([&] {
    while (is_posting) {
      mailbox->post([held] {});
      ++posted;
    }
  });
  EXPECT_TRUE(run_until([&] { return posted > 100; }));
  loop_.reset();
  const int posted_at_end = posted;
  while (posted < posted_at_end + 100) {
    std::this_thread::yield();
  }
  is_posting = false;
  poster.join();
  EXPECT_EQ(held.use_count(), 1);
}

struct Counter {
  void bump() { ++count; }
  int count = 0;
};

TEST_P(LoopTest, TasksRunOnceAtTheEndOfTheTurnAndQueuedByTasksInTheNext) {
  struct Repeater {
    explicit Repeater(Loop& on) : loop(on), task(Task::Callback::to<&Repeater::run>(this)) {}
    void run() {
      if (++count < 3) {
        loop.defer(task);
      }
    }
    Loop& loop;
    int count = 0;
    Task task;
  } repeater(*loop_);
  Counter counter;
  Task cancelled(Task::Callback::to<&Counter::bump>(&counter));
  loop_->defer(repeater.task);
  loop_->defer(repeater.task);
  loop_->defer(cancelled);
  cancelled.cancel();
  for (int turn = 1; turn <= 3; ++turn) {
    loop_->run_turn(true);  // Does not wait, since a task is queued.
    EXPECT_EQ(repeater.count, turn);
  }
  EXPECT_EQ(counter.count, 0);
}

TEST_P(LoopTest, TimersFireInTheLoop) {
  Counter counter;
  Timer timer(Timer::Callback::to<&Counter::bump>(&counter));
  const auto before = std::chrono::steady_clock::now();
  loop_->timers().arm(timer, before + base::Millis(20));
  ASSERT_TRUE(run_until([&] { return counter.count == 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - before, base::Millis(20));
}

TEST_P(LoopTest, AnIdleLoopSleeps) {
  EXPECT_LE(turns_in(base::Millis(60)), 40);
}

TEST_P(LoopTest, WatchesReportReadinessUntilTheyAreDestroyed) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  const Fd near(pair[0]);
  const Fd far(pair[1]);
  struct Reader {
    int fd = -1;
    int calls = 0;
    int reads = 0;
    bool consumes = false;
    std::unique_ptr<FdWatch> watch;
    void on_ready(unsigned events) {
      EXPECT_NE(events & POLLIN, 0U);
      ++calls;
      char byte = 0;
      if (consumes && ::read(fd, &byte, 1) == 1) {
        ++reads;
        watch.reset();
      }
    }
  } reader;
  reader.fd = near.get();
  auto made = loop_->watch_fd(near.get(), POLLIN,
                              base::Delegate<void(unsigned)>::to<&Reader::on_ready>(&reader));
  ASSERT_TRUE(made.has_value());
  reader.watch = std::move(made).value();
  run_for(base::Millis(5));
  EXPECT_EQ(reader.calls, 0);
  ASSERT_EQ(::write(far.get(), "xy", 2), 2);
  ASSERT_TRUE(run_until([&] { return reader.calls >= 3; }));  // Level-triggered.
  reader.consumes = true;
  ASSERT_TRUE(run_until([&] { return reader.reads == 1; }));
  const int calls = reader.calls;
  run_for(base::Millis(5));
  EXPECT_EQ(reader.calls, calls);
}

TEST_P(LoopTest, MemoryOfABurstIsGivenBackAndThenTheLoopSleeps) {
  Acceptor acceptor;
  auto listener = listen(loopback(), acceptor);
  Recorder client;
  connect(client, listener->address());
  ASSERT_TRUE(run_until([&] { return client.is_connected && acceptor.accepted.size() == 1; }));
  acceptor.accepted[0]->keeps_data = false;
  const std::size_t before = budget_.used_bytes();
  constexpr std::size_t kPieceBytes = 1'000'000;
  constexpr std::size_t kPieces = 20;
  for (std::size_t i = 0; i < kPieces; ++i) {
    client.stream->write(std::string(kPieceBytes, 'x'));
  }
  const std::size_t burst = budget_.used_bytes();
  EXPECT_GT(burst, before + 19'000'000);
  ASSERT_TRUE(run_until([&] { return acceptor.accepted[0]->bytes == kPieces * kPieceBytes; }));
  ASSERT_TRUE(run_until([&] { return budget_.used_bytes() < before + 2'000'000; }));
  // The trims are over soon, and then nothing is armed any more.
  const auto deadline = loop_->now() + base::Seconds(10);
  while (loop_->timers().sleep_max(loop_->now()) >= base::Millis(0)) {
    ASSERT_LT(loop_->now(), deadline);
    loop_->run_turn(true);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, LoopTest, testing::ValuesIn(kEngines), engine_name_of);

/// Makes io_uring_setup() fail with `error` for this thread, as containers do.
void forbid_io_uring(int error) {
  std::array<sock_filter, 4> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(LoopOpen, AutoTakesEpollWhenAFilterForbidsIoUring) {
  for (const int error : {EPERM, ENOSYS}) {
    std::thread confined([error] {
      forbid_io_uring(error);
      base::MemoryBudget budget{0};
      auto automatic = Loop::open({}, budget);
      ASSERT_TRUE(automatic.has_value());
      EXPECT_EQ((*automatic)->engine_name(), "epoll");
      EXPECT_NE((*automatic)->fallback_reason().find("io_uring"), std::string_view::npos);
      LoopOptions options;
      options.io = Io::Uring;
      auto forced = Loop::open(options, budget);
      ASSERT_FALSE(forced.has_value());
      EXPECT_EQ(forced.error().code(), base::ErrorCode::Unsupported);
      EXPECT_NE(forced.error().text().find("io_uring_disabled"), std::string::npos);
    });
    confined.join();
  }
}

TEST(LoopOpen, TheLimitOfLockedMemoryIsNamed) {
  EXPECT_NE(uring_setup_error("x", ENOMEM).text().find("RLIMIT_MEMLOCK"), std::string::npos);
}

}  // namespace
}  // namespace kvferry::net
