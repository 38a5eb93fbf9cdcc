// A pool of several fake backends, and keys that belong to each of them.
#pragma once

#include <string>
#include <vector>

#include "pool/pool.h"
#include "tests/unit/pool/placed_rig.h"

namespace kvferry::pool {

class MultiGetRig : public PlacedRig {
 protected:
  ~MultiGetRig() override {
    if (pool_) {
      pool_->shut();
    }
  }

  void make(std::size_t backends) {
    start(backends);
    pool_ = std::make_unique<Pool>(context(), snapshot_);
  }

  static std::string item(std::string_view key, std::string_view value) {
    return "VALUE " + std::string(key) + " 0 " + std::to_string(value.size()) + "\r\n" +
           std::string(value) + "\r\n";
  }
  test::Outcome& get(const std::vector<std::string>& keys, std::string_view command = "get") {
    std::string line(command);
    for (const std::string& text : keys) {
      line += " " + text;
    }
    return sink_.send(*pool_, line + "\r\n");
  }
  std::unique_ptr<Pool> pool_;
};

}  // namespace kvferry::pool
