// Small files read whole.
//
// Threads: control thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace kvferry::config {

/// Content of the file at `path`, cut after `bytes_max` bytes.
base::Result<std::string> read_text_file(const std::string& path, std::size_t bytes_max);

}  // namespace kvferry::config
