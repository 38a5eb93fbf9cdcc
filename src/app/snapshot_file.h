// Snapshots of the embedded store as files: read at the start, written at the end.
//
//   PATH         what the next start reads
//   PATH.new     one that is being written; takes the place of PATH when it is whole and on disk
//   PATH.read    one that was read: a later start does not read it again, since what has changed
//   since then is
//                not in it. Its owner may give it its name back.
//
// Errors:  name the file, the byte, what is there and what is allowed.
// Threads: control, before workers begin and after they have ended. Both block it, for as long as
// they
//          are told at most.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/snapshot_loader.h"
#include "store/store.h"

namespace kvferry::app {

/// Whether reading or writing has to stop, and why; asked for each megabyte or so, and never within
/// an item that is written.
enum class SnapshotStop : std::uint8_t { GoOn, TimeIsOver, IsUnwanted };
using AskSnapshotStop = std::function<SnapshotStop()>;

struct SnapshotRead {
  store::SnapshotCounts counts;
  store::Instant written_at{};
  std::uint64_t bytes = 0;
  bool is_whole = true;  // False: the time was over; what was read stays.
};

/// Reads the file into `store`, and renames it. Nothing: there is no file. After an error some
/// items may be in the store, and the file is as it was.
base::Result<std::optional<SnapshotRead>> read_snapshot(const std::string& path,
                                                        store::Store& store, store::Instant now,
                                                        const AskSnapshotStop& ask);

struct SnapshotWritten {
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;
};

/// Writes all items that live in `store`. After an error there is no
/// PATH.new, and PATH is as it was.
base::Result<SnapshotWritten> write_snapshot(const std::string& path, store::Store& store,
                                             store::Instant now, const AskSnapshotStop& ask);

/// Whether a file could be made there at the end, as far as that can be told now.
base::Result<void> check_snapshot_place(const std::string& path);

}  // namespace kvferry::app
