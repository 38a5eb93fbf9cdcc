#include "call/redis_target.h"

namespace kvferry::call {

void RedisTarget::execute(Call& call, const redis::Block& /*block*/) {
  answer(call, "-ERR kvferry: transactions are not available here\r\n",
         memcache::ReplyCode::ServerError);
}

}  // namespace kvferry::call
