#include "call/call.h"

namespace kvferry::call {

bool is_hidden(Quiet quiet, memcache::ReplyCode code) noexcept {
  using memcache::ReplyCode;
  switch (quiet) {
    case Quiet::No:
      return false;
    case Quiet::All:
      return true;
    case Quiet::Success:
      return code == ReplyCode::MetaHd || code == ReplyCode::MetaVa;
    case Quiet::Miss:
      return code == ReplyCode::MetaEn;
    case Quiet::Good:
      return !memcache::is_error(code);
  }
  return false;
}

}  // namespace kvferry::call
