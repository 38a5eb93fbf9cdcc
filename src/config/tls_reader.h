// Reads the mappings `tls`, and looks at the files that they name.
//
// Threads: one reader, one thread. check_tls_files() reads files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/key_table.h"
#include "config/problem.h"
#include "net/tls_options.h"

namespace kvferry::config {

class Reader;

/// One `tls` of a configuration, and what problems with it point to.
struct TlsUse {
  net::TlsOptions options;
  /// Problems without a message: one for each key that is given, the first for the mapping.
  std::vector<Problem> places;
};

/// Setter of `tls`: of an entry of `listen` (Server) or of a pool, towards its servers (Client).
void read_tls(const Value& value, net::TlsRole role, Reader& reader,
              std::optional<net::TlsOptions>& out);

/// The word of `verify` for `options`.
std::string_view verify_word(const net::TlsOptions& options);

/// Errors about certificates, keys and authorities that cannot be used; W41 about certificates that
/// are not valid (for long).
void check_tls_files(const TlsUse& use, ProblemList& problems);

}  // namespace kvferry::config
