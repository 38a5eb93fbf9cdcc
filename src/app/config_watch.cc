#include "app/config_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <poll.h>
#include <sys/inotify.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kvferry::app {
namespace {

namespace fs = std::filesystem;

constexpr base::Millis kSettleTime{200};
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE;
/// Links on the way to one file; the kernel gives up at as many.
constexpr int kLinksMax = 40;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The folder that `path` names, or lies in.
fs::path folder_of(const fs::path& path) {
  if (is_folder(path)) {
    return path;
  }
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

ConfigWatch::ConfigWatch(net::Loop& loop, int fd, const std::vector<std::string>& paths,
                         base::Delegate<void()> on_changed)
    : loop_(loop),
      fd_(fd),
      paths_(paths),
      on_changed_(on_changed),
      settle_timer_(net::Timer::Callback::to<&ConfigWatch::on_settled>(this)) {}

ConfigWatch::~ConfigWatch() {
  watch_.reset();
  close(fd_);
}

base::Result<std::unique_ptr<ConfigWatch>> ConfigWatch::open(net::Loop& loop,
                                                             const std::vector<std::string>& paths,
                                                             base::Delegate<void()> on_changed) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) {
    return base::Error::from_errno("cannot watch configuration files", errno);
  }
  std::unique_ptr<ConfigWatch> made(new ConfigWatch(loop, fd, paths, on_changed));
  for (const std::string& path : paths) {
    const fs::path folder = folder_of(path);
    if (made->watch(folder) == nullptr) {
      return base::Error::from_errno("cannot watch " + folder.string(), errno);
    }
  }
  made->look();
  auto watch = loop.watch_fd(
      fd, POLLIN, base::Delegate<void(unsigned)>::to<&ConfigWatch::on_readable>(made.get()));
  if (!watch) {
    return std::move(watch).error();
  }
  made->watch_ = std::move(watch).value();
  return made;
}

void ConfigWatch::look() {
  const std::vector<Folder> before = std::exchange(folders_, {});
  for (const std::string& path : paths_) {
    follow(path);
    if (is_folder(path)) {
      add_files_of(path);
    }
  }
  for (const Folder& old : before) {
    const bool is_kept = std::any_of(folders_.begin(), folders_.end(),
                                     [&](const Folder& folder) { return folder.id == old.id; });
    if (!is_kept) {
      inotify_rm_watch(fd_, old.id);
    }
  }
}

/// Walks to `path` as the kernel would, and watches each link on the way, and the file at its end.
/// Where something is missing its appearance is watched for.
void ConfigWatch::follow(const fs::path& path) {
  std::deque<fs::path> left(path.begin(), path.end());
  fs::path at = path.is_absolute() ? "/" : ".";
  int links = 0;
  while (!left.empty()) {
    const fs::path name = left.front();
    left.pop_front();
    if (name.empty() || name == "." || name == "/") {
      continue;
    }
    const fs::path next = at / name;
    std::error_code error;
    const fs::file_type type = fs::symlink_status(next, error).type();
    if (type == fs::file_type::symlink && ++links <= kLinksMax) {
      watch_entry(at, name);
      const fs::path target = fs::read_symlink(next, error);
      at = target.is_absolute() ? fs::path("/") : at;
      left.insert(left.begin(), target.begin(), target.end());
    } else if (type == fs::file_type::directory) {
      at = next;
    } else {
      watch_entry(at, name);
      return;
    }
  }
}

/// Every entry of a folder matters, and what those of them that are links lead to.
void ConfigWatch::add_files_of(const fs::path& folder) {
  if (Folder* watched = watch(folder)) {
    watched->is_whole = true;
  }
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == ".yml" && entry->is_symlink(ignored)) {
      follow(entry->path());
    }
  }
}

ConfigWatch::Folder* ConfigWatch::watch(const fs::path& folder) {
  const int id = inotify_add_watch(fd_, folder.c_str(), kEvents | IN_ONLYDIR);
  if (id < 0) {
    return nullptr;
  }
  // The same folder has the same id, whatever path led to it.
  for (Folder& known : folders_) {
    if (known.id == id) {
      return &known;
    }
  }
  folders_.push_back(Folder{.id = id, .names = {}});
  return &folders_.back();
}

void ConfigWatch::watch_entry(const fs::path& folder, const std::string& name) {
  if (Folder* watched = watch(folder)) {
    watched->names.push_back(name);
  }
}

bool ConfigWatch::matters(int id, std::string_view name) const {
  return std::any_of(folders_.begin(), folders_.end(), [&](const Folder& folder) {
    return folder.id == id &&
           (folder.is_whole ||
            std::find(folder.names.begin(), folder.names.end(), name) != folder.names.end());
  });
}

void ConfigWatch::on_readable(unsigned /*events*/) {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  bool has_changed = false;
  for (;;) {
    const ssize_t size = read(fd_, buffer.data(), buffer.size());
    if (size <= 0) {
      break;
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      const std::string_view name =
          event->len == 0 ? std::string_view{} : std::string_view(event->name);
      // Events may have been lost; a watch that we gave up says so and means nothing.
      const bool is_overflow = (event->mask & IN_Q_OVERFLOW) != 0;
      const bool is_farewell = (event->mask & IN_IGNORED) != 0;
      has_changed = has_changed || is_overflow || (!is_farewell && matters(event->wd, name));
      at += sizeof(inotify_event) + event->len;
    }
  }
  if (has_changed) {
    look();  // A link may lead elsewhere now.
    loop_.timers().arm(settle_timer_, loop_.now() + kSettleTime);
  }
}

}  // namespace kvferry::app
