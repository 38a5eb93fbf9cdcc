// A model written as YAML in our own form.
//
// load_text() of the result gives an equal model, except that passwords written in the file are
// replaced by ***.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "config/model.h"

namespace kvferry::config {

enum class YamlForm : std::uint8_t {
  Everything,  // Each key, defaults included.
  Changes,     // Keys that differ from the default of our own dialect.
};

std::string to_yaml(const Model& model, YamlForm form);

}  // namespace kvferry::config
