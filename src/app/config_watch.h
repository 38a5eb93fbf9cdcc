// ConfigWatch: tells when a configuration file has changed (`watch: true`), by inotify.
//
// Folders are watched, not files: editors and deployments replace files by renaming. Where a path
// leads through symbolic links, the folder of each link is watched too, since deployments swap
// links (`current -> releases/42`, Kubernetes' `..data`). Events are gathered for a moment, so that
// a file that is written in several steps is read once, whole.
// Threads: that of the loop.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/delegate.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/timer.h"

namespace kvferry::app {

class ConfigWatch {
 public:
  /// Watches the files at `paths` (files, or folders of files), and the links on the way to them.
  static base::Result<std::unique_ptr<ConfigWatch>> open(net::Loop& loop,
                                                         const std::vector<std::string>& paths,
                                                         base::Delegate<void()> on_changed);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

 private:
  /// A folder that is watched, and which of its entries matter.
  struct Folder {
    int id = -1;  // inotify's.
    bool is_whole = false;
    std::vector<std::string> names;  // Unless all do.
  };

  ConfigWatch(net::Loop& loop, int fd, const std::vector<std::string>& paths,
              base::Delegate<void()> on_changed);
  /// Finds out anew what to watch.
  void look();
  void follow(const std::filesystem::path& path);
  void add_files_of(const std::filesystem::path& folder);
  /// Null when the folder cannot be watched.
  Folder* watch(const std::filesystem::path& folder);
  void watch_entry(const std::filesystem::path& folder, const std::string& name);
  bool matters(int id, std::string_view name) const;
  void on_readable(unsigned events);
  void on_settled() { on_changed_(); }

  net::Loop& loop_;
  int fd_;
  std::vector<std::string> paths_;
  base::Delegate<void()> on_changed_;
  net::Timer settle_timer_;
  std::unique_ptr<net::FdWatch> watch_;
  std::vector<Folder> folders_;
};

}  // namespace kvferry::app
