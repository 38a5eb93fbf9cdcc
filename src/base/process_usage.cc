#include "base/process_usage.h"

#include <array>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace kvferry::base {

namespace {

std::uint64_t read_resident_bytes() noexcept {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  std::array<char, 256> text{};
  const ssize_t size = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (size <= 0) {
    return 0;
  }
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return parse_statm_resident({text.data(), static_cast<std::size_t>(size)}, page_bytes)
      .value_or(0);
}

std::uint64_t count_open_descriptors() noexcept {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) {
    return 0;
  }
  std::uint64_t count = 0;
  while (const dirent* entry = ::readdir(directory)) {  // NOLINT(concurrency-mt-unsafe): own stream
    if (entry->d_name[0] != '.') {
      ++count;
    }
  }
  ::closedir(directory);
  return count - 1;  // The directory itself was open.
}

Micros duration_of(const timeval& time) noexcept {
  return Seconds(time.tv_sec) + Micros(time.tv_usec);
}

}  // namespace

std::optional<std::uint64_t> parse_statm_resident(std::string_view text,
                                                  std::uint64_t page_bytes) noexcept {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(blank + 1);
  std::uint64_t pages = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), pages);
  if (code != std::errc() || end == text.data() + text.size() || *end != ' ') {
    return std::nullopt;
  }
  return pages * page_bytes;
}

ProcessUsage read_process_usage() {
  ProcessUsage usage;
  usage.resident_bytes = read_resident_bytes();
  usage.open_descriptors = count_open_descriptors();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    usage.descriptors_max = limit.rlim_cur;
  }
  rusage spent{};
  if (::getrusage(RUSAGE_SELF, &spent) == 0) {
    usage.cpu_user = duration_of(spent.ru_utime);
    usage.cpu_system = duration_of(spent.ru_stime);
  }
  return usage;
}

}  // namespace kvferry::base
