// StoreDump: the reply to `lru_crawler metadump` and `mgdump`: a line for each item.
//
// It goes on as fast as its client reads. Items that are stored meanwhile may be missing.
// Source:  memcache-protocol.md section 10. Threads: one worker.
#pragma once

#include <string>

#include "base/delegate.h"
#include "call/call.h"
#include "store/store.h"

namespace kvferry::route {

class StoreDump final : public call::ReplySource {
 public:
  enum class Form : std::uint8_t {
    Meta,  // key=<k> exp=<e> la=<l> cas=<c> fetch=<yes|no> cls=1 size=<n>
    Keys,  // mg <k>
  };
  using Finished = base::Delegate<void(StoreDump&)>;

  /// `finished` is called when the last part is about to be delivered; the dump may go then.
  StoreDump(store::Store& store, Form form, store::Instant now, Finished finished) noexcept
      : store_(store), form_(form), now_(now), finished_(finished) {}

  /// Sends until the sink has enough.
  void run(call::Call& call);

  // call::ReplySource
  void resume(call::Call& call) override;
  void discard(call::Call& call) override;

 private:
  void on_item(const store::ItemView& item);
  void finish(call::Call& call, const std::string& last);

  store::Store& store_;
  const Form form_;
  const store::Instant now_;
  const Finished finished_;
  store::WalkPlace place_;
  std::string lines_ = "OK\r\n";
  bool has_begun_ = false;
};

}  // namespace kvferry::route
