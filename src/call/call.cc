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
      return code == ReplyCode::MetaEn || code == ReplyCode::End;
    case Quiet::Done:
      // The answer may be that of another command than the client's.
      return code == ReplyCode::MetaHd || code == ReplyCode::MetaVa || code == ReplyCode::MetaMe ||
             code == ReplyCode::MetaEn || code == ReplyCode::Value || code == ReplyCode::End ||
             code == ReplyCode::Ok || code == ReplyCode::Number;
    case Quiet::Good:
      return !memcache::is_error(code);
  }
  return false;
}

}  // namespace kvferry::call
