// docs/configuration.md, made from the tables of keys.
//
// Threads: pure functions.
#pragma once

#include <string>

namespace kvferry::config {

/// The whole document. A test keeps the file equal to it.
std::string configuration_document();

}  // namespace kvferry::config
