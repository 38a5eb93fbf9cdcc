#include "app/snapshot_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "store/snapshot_reader.h"
#include "store/snapshot_saver.h"

namespace kvferry::app {
namespace {

/// Read from the file at a time.
constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
/// Only the owner reads and writes: values are nobody else's.
constexpr mode_t kFileMode = 0600;
/// After so many buckets of the store, or so many bytes, a writer asks whether it has to stop.
constexpr std::size_t kStepsPerQuestion = 256;
constexpr std::uint64_t kBytesPerQuestion = std::uint64_t{1} << 20;

base::Error error_of(const std::string& path, std::string_view what, int error_number) {
  return base::Error::from_errno("snapshot " + path + ": " + std::string(what), error_number);
}

base::Error stopped(const std::string& path, SnapshotStop stop, std::string_view doing) {
  const std::string subject = "snapshot " + path + ": ";
  return stop == SnapshotStop::TimeIsOver
             ? base::Error(base::ErrorCode::TimedOut,
                           subject + std::string(doing) + " took longer than snapshot_timeout")
             : base::Error(base::ErrorCode::Refused,
                           subject + "a signal came while " + std::string(doing));
}

/// A descriptor that closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { static_cast<void>(close()); }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  /// 0, or the number of the error.
  int close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor >= 0 && ::close(descriptor) != 0 ? errno : 0;
  }

 private:
  int descriptor_;
};

/// Takes the bytes of a snapshot into a file.
class FileSink final : public store::SnapshotSink {
 public:
  explicit FileSink(int descriptor) : descriptor_(descriptor) {}

  bool write(std::string_view bytes) override {
    while (!bytes.empty() && error_number_ == 0) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0) {
        error_number_ = errno == EINTR ? 0 : errno;
        continue;
      }
      bytes.remove_prefix(static_cast<std::size_t>(written));
      bytes_ += static_cast<std::uint64_t>(written);
    }
    return error_number_ == 0;
  }

  int error_number() const { return error_number_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  int descriptor_;
  int error_number_ = 0;
  std::uint64_t bytes_ = 0;
};

/// A file beyond the limit of its size ends in an error then, and not in our end.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;
  ~WithoutSizeSignal() { static_cast<void>(std::signal(SIGXFSZ, before_)); }

 private:
  void (*before_)(int);
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

/// Makes a rename last through a crash of the machine.
int sync_folder(const std::string& path) {
  const File folder(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.is_open() && fsync(folder.descriptor()) == 0 ? 0 : errno;
}

int open_new(const std::string& path) {
  static_cast<void>(unlink(path.c_str()));  // Of a writer that was killed.
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
}

base::Result<SnapshotWritten> fill(const std::string& path, File& file, store::Store& store,
                                   store::Instant now, const AskSnapshotStop& ask) {
  FileSink sink(file.descriptor());
  store::SnapshotSaver saver(store, sink, now);
  std::uint64_t asked_at = 0;
  for (std::size_t steps = 1; saver.step(); ++steps) {
    if (steps % kStepsPerQuestion != 0 && sink.bytes() - asked_at < kBytesPerQuestion) {
      continue;
    }
    asked_at = sink.bytes();
    if (const SnapshotStop stop = ask(); stop != SnapshotStop::GoOn) {
      return stopped(path, stop, "writing");
    }
  }
  if (saver.has_failed()) {
    return error_of(path, "cannot be written after byte " + std::to_string(sink.bytes()),
                    sink.error_number());
  }
  if (fsync(file.descriptor()) != 0) {
    return error_of(path, "cannot be written", errno);
  }
  if (const int error_number = file.close(); error_number != 0) {
    return error_of(path, "cannot be written", error_number);
  }
  return SnapshotWritten{.items = saver.items(), .bytes = sink.bytes()};
}

/// Nothing: the time is over.
base::Result<std::optional<std::uint64_t>> read_all(const std::string& path, const File& file,
                                                    store::SnapshotLoader& loader,
                                                    const AskSnapshotStop& ask) {
  store::SnapshotReader reader(loader);
  const auto refuse = [&] {
    return base::Error(base::ErrorCode::InvalidInput, "snapshot " + path + ": byte " +
                                                          std::to_string(reader.error()->at) +
                                                          ": " + reader.error()->text);
  };
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    const ssize_t count = ::read(file.descriptor(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return error_of(path, "cannot be read", errno);
    }
    if (count == 0) {
      break;
    }
    if (!reader.take({buffer.data(), static_cast<std::size_t>(count)})) {
      return refuse();
    }
    const SnapshotStop stop = ask();
    if (stop == SnapshotStop::IsUnwanted) {
      return stopped(path, stop, "reading");
    }
    if (stop == SnapshotStop::TimeIsOver) {
      return std::optional<std::uint64_t>();
    }
  }
  if (!reader.finish()) {
    return refuse();
  }
  return std::optional(reader.bytes());
}

}  // namespace

base::Result<std::optional<SnapshotRead>> read_snapshot(const std::string& path,
                                                        store::Store& store, store::Instant now,
                                                        const AskSnapshotStop& ask) {
  // Without O_NONBLOCK a pipe of this name would be waited for.
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT) {
      return std::optional<SnapshotRead>();
    }
    return error_of(path, "cannot be opened", errno);
  }
  struct stat status{};
  if (fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return base::Error(base::ErrorCode::InvalidInput, "snapshot " + path + ": is no plain file");
  }
  store::SnapshotLoader loader(store, now);
  auto bytes = read_all(path, file, loader, ask);
  if (!bytes) {
    return std::move(bytes).error();
  }
  if (const std::string read = path + ".read"; std::rename(path.c_str(), read.c_str()) != 0) {
    return error_of(path, "cannot be renamed to " + read, errno);
  }
  return std::optional(SnapshotRead{.counts = loader.counts(),
                                    .written_at = loader.written_at(),
                                    .bytes = bytes->value_or(0),
                                    .is_whole = bytes->has_value()});
}

base::Result<SnapshotWritten> write_snapshot(const std::string& path, store::Store& store,
                                             store::Instant now, const AskSnapshotStop& ask) {
  const std::string fresh = path + ".new";
  const WithoutSizeSignal guard;
  File file(open_new(fresh));
  if (!file.is_open()) {
    return error_of(fresh, "cannot be made", errno);
  }
  auto written = fill(fresh, file, store, now, ask);
  if (written && std::rename(fresh.c_str(), path.c_str()) != 0) {
    written = error_of(fresh, "cannot be renamed to " + path, errno);
  }
  if (!written) {
    static_cast<void>(unlink(fresh.c_str()));
    return written;
  }
  if (const int error_number = sync_folder(path); error_number != 0) {
    return error_of(path, "its folder cannot be written", error_number);
  }
  return written;
}

base::Result<void> check_snapshot_place(const std::string& path) {
  struct stat status{};
  if (path.ends_with('/') || (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))) {
    return base::Error(base::ErrorCode::InvalidInput, "snapshot " + path + ": is a folder");
  }
  const std::string fresh = path + ".new";
  File file(open_new(fresh));
  if (!file.is_open()) {
    return error_of(fresh, "cannot be made", errno);
  }
  static_cast<void>(unlink(fresh.c_str()));
  return {};
}

}  // namespace kvferry::app
