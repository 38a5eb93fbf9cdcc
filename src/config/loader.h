// Reads configuration files into a Model, or says everything that is wrong with them.
//
// Errors:   Loaded::problems; there is a model exactly when none of them is an error.
// Threads:  any thread; load() reads files and so belongs to the control thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/model.h"
#include "config/problem.h"
#include "config/reader.h"

namespace kvferry::config {

struct Loaded {
  std::optional<Model> model;
  std::vector<Problem> problems;   // Errors, warnings and notices, in the order of the files.
  std::vector<std::string> files;  // What was read, directories replaced by their files.

  /// The lines of all problems, for logs and terminals.
  std::string text() const;
};

/// A file that is already in memory.
struct NamedText {
  std::string name;
  std::string text;
};

/// Reads texts as one configuration. Pure: touches no file and no clock.
Loaded load_texts(std::vector<NamedText> texts);

/// The same for one text.
Loaded load_text(std::string name, std::string text);

/// Reads `paths` as one configuration; a directory stands for its *.yml files, sorted by name.
Loaded load(const std::vector<std::string>& paths);

}  // namespace kvferry::config
