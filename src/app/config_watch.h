// ConfigWatch: tells when a configuration file has changed (`watch: true`), by inotify.
//
// Folders are watched, not files: editors and deployments replace files by renaming. Events are
// gathered for a moment, so that a file that is written in several steps is read once, whole.
// Threads: that of the loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/delegate.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/timer.h"

namespace kvferry::app {

class ConfigWatch {
 public:
  /// Watches the folders of `paths` (files, or folders of files).
  static base::Result<std::unique_ptr<ConfigWatch>> open(net::Loop& loop,
                                                         const std::vector<std::string>& paths,
                                                         base::Delegate<void()> on_changed);
  ~ConfigWatch();
  ConfigWatch(const ConfigWatch&) = delete;
  ConfigWatch& operator=(const ConfigWatch&) = delete;

 private:
  ConfigWatch(net::Loop& loop, int fd, base::Delegate<void()> on_changed);
  void on_readable(unsigned events);
  void on_settled() { on_changed_(); }

  net::Loop& loop_;
  int fd_;
  base::Delegate<void()> on_changed_;
  net::Timer settle_timer_;
  std::unique_ptr<net::FdWatch> watch_;
  std::vector<std::string> names_;  // File names that matter; empty: all.
};

}  // namespace kvferry::app
