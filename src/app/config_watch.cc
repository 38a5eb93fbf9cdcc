#include "app/config_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kvferry::app {
namespace {

constexpr base::Millis kSettleTime{200};
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE;

}  // namespace

ConfigWatch::ConfigWatch(net::Loop& loop, int fd, base::Delegate<void()> on_changed)
    : loop_(loop),
      fd_(fd),
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
  std::unique_ptr<ConfigWatch> made(new ConfigWatch(loop, fd, on_changed));
  bool has_folder = false;
  for (const std::string& path : paths) {
    struct stat status{};
    const bool is_folder = stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    const std::size_t slash = path.rfind('/');
    const std::string folder = is_folder ? path
                               : slash == std::string::npos
                                   ? "."
                                   : path.substr(0, std::max<std::size_t>(slash, 1));
    if (is_folder) {
      has_folder = true;
    } else {
      made->names_.push_back(path.substr(slash == std::string::npos ? 0 : slash + 1));
    }
    if (inotify_add_watch(fd, folder.c_str(), kEvents) < 0) {
      return base::Error::from_errno("cannot watch " + folder, errno);
    }
  }
  if (has_folder) {
    made->names_.clear();
  }
  auto watch = loop.watch_fd(
      fd, POLLIN, base::Delegate<void(unsigned)>::to<&ConfigWatch::on_readable>(made.get()));
  if (!watch) {
    return std::move(watch).error();
  }
  made->watch_ = std::move(watch).value();
  return made;
}

void ConfigWatch::on_readable(unsigned /*events*/) {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  bool matters = false;
  for (;;) {
    const ssize_t size = read(fd_, buffer.data(), buffer.size());
    if (size <= 0) {
      break;
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      const std::string_view name =
          event->len == 0 ? std::string_view{} : std::string_view(event->name);
      matters = matters || names_.empty() ||
                std::find(names_.begin(), names_.end(), name) != names_.end();
      at += sizeof(inotify_event) + event->len;
    }
  }
  if (matters) {
    loop_.timers().arm(settle_timer_, loop_.now() + kSettleTime);
  }
}

}  // namespace kvferry::app
