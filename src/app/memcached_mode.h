// `kvferry memcached ...`: from memcached's options to a running server.
//
// Threads: the main thread before the start; adjust_listeners() on control.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/memcached_options.h"
#include "app/plan.h"
#include "base/result.h"
#include "config/model.h"
#include "front/credentials.h"

namespace kvferry::app {

/// Names become addresses and "every interface" becomes 0.0.0.0 and, where the system has IPv6, ::.
/// Asks the resolver of the system, so it may take a while. Errors: NotFound.
base::Result<std::vector<config::ListenerOptions>> resolve_listeners(
    const std::vector<config::ListenerOptions>& listeners);

/// The configuration that `options` mean: one pool, the store. Its listeners are resolved.
config::Model memcached_model(const MemcachedOptions& options);

/// What a configuration file has no word for.
void adjust_listeners(const MemcachedOptions& options,
                      const std::shared_ptr<const front::Credentials>& credentials,
                      std::vector<ListenerPlan>& listeners);

/// Reads an authentication file: lines of user:password. Errors: System, InvalidInput.
base::Result<std::shared_ptr<const front::Credentials>> read_credentials(const std::string& path);

/// The whole program; gives the exit status.
int run_memcached(const std::vector<std::string>& arguments);

}  // namespace kvferry::app
