#include "call/redis_target.h"

namespace kvferry::call {

void RedisTarget::execute(Call& call, const redis::Block& /*block*/) {
  answer(call, "-ERR kvferry: transactions are not available here\r\n",
         memcache::ReplyCode::ServerError);
}

std::string_view RedisTarget::join(const redis::Request& /*request*/, BlockPlace& /*place*/) {
  return {};
}

}  // namespace kvferry::call
