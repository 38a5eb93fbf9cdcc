#include "base/result.h"

#include <system_error>

namespace kvferry::base {

Error Error::from_errno(std::string_view what, int error_number) {
  // generic_category().message() is thread-safe, which strerror() is not.
  return {ErrorCode::System,
          std::string(what) + ": " + std::generic_category().message(error_number)};
}

}  // namespace kvferry::base
