// Configuration files: any text is answered with a model or with errors that name a line, and what
// is accepted survives being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/loader.h"
#include "config/show.h"
#include "config/yaml_tree.h"

namespace {

using kvferry::config::Loaded;
using kvferry::config::Model;
using kvferry::config::PoolConfig;
using kvferry::config::Secret;
using kvferry::config::Severity;
using kvferry::config::YamlForm;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// Written models show *** instead of a password.
void forget(Secret& secret) {
  if (secret.kind == Secret::Kind::Text) {
    secret.text = "***";
  }
}

void forget_secrets(Model& model) {
  if (model.process.admin) {
    forget(model.process.admin->token);
  }
  for (PoolConfig& pool : model.pools) {
    forget(pool.redis_auth);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Loaded loaded = kvferry::config::load_text("t.yml", text);
  bool has_error = false;
  for (const auto& problem : loaded.problems) {
    has_error = has_error || problem.severity == Severity::Error;
    require(problem.where.line > 0 && problem.where.column > 0 && !problem.message.empty());
    require(!kvferry::config::to_text(problem).empty());
  }
  require(loaded.model.has_value() != has_error);
  if (!loaded.model) {
    return 0;
  }
  for (const YamlForm form : {YamlForm::Everything, YamlForm::Changes}) {
    const std::string written = kvferry::config::to_yaml(*loaded.model, form);
    if (written.empty() || written.size() > kvferry::config::kFileBytesMax) {
      continue;
    }
    const Loaded again = kvferry::config::load_text("s.yml", written);
    Model expected = *loaded.model;
    forget_secrets(expected);
    require(again.model.has_value() && *again.model == expected);
  }
  return 0;
}
