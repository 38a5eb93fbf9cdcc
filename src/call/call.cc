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
  }
  return false;
}

}  // namespace kvferry::call
