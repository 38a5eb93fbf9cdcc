// Secrets that stand in files or in the environment instead of the configuration.
//
// Threads: control thread; reads files and the environment.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "config/model.h"

namespace kvferry::config {

inline constexpr std::size_t kSecretBytesMax = 512;

/// The secret itself; empty when none is set. One line end at the end of a file is left out.
base::Result<std::string> read_secret(const Secret& secret);

/// True when `secret` stands in a file that users other than its owner may read or write.
bool is_exposed(const Secret& secret);

}  // namespace kvferry::config
