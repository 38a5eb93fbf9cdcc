#include "app/memcached_help.h"

namespace kvferry::app {

std::string_view memcached_help() noexcept {
  // One option a line, with its long form: scripts look for names in it.
  return R"(kvferry in place of memcached 1.6

-p, --port=<num>          TCP port (default: 11211; 0: no TCP)
-U, --udp-port=<num>      0 only: UDP is not served
-s, --unix-socket=<file>  Unix socket to listen on, instead of TCP
-a, --unix-mask=<mode>    access mode of the Unix socket, octal (default: 700)
-l, --listen=<addr>       where to listen: [notls:][tag_NAME_:]host[:port], several with commas or by
                          repeating the option (default: every interface)
-A, --enable-shutdown     allow the command "shutdown"
-d, --daemon              run in the background
-u, --user=<user>         become this user (when started by root)
-m, --memory-limit=<num>  memory of the store in megabytes (default: 64)
-M, --disable-evictions   refuse new items when memory is full
-c, --conn-limit=<num>    connections at a time (default: 1024)
-v, --verbose             log more; -vv and -vvv still more
-h, --help                print this
-i, --license             print the license
-V, --version             print the version
-P, --pidfile=<file>      write the process id to this file
-t, --threads=<num>       worker threads (default: 4)
-R, --max-reqs-per-event=<num>  commands of one connection in a turn (default: 20)
-C, --disable-cas         no CAS uniques
-b, --listen-backlog=<num>  length of the queue of new connections (default: 1024)
-B, --protocol=<name>     auto, ascii or binary (default: auto, the first byte of a client tells)
-I, --max-item-size=<num> largest item, with k or m (default: 1m, from 1k to 1024m)
-F, --disable-flush-all   refuse "flush_all"
-X, --disable-dumping     refuse "stats cachedump" and "lru_crawler metadump"
-W, --disable-watch       refuse "watch"
-e, --memory-file=<file>  items are written to this file at the end and read from it at the start
-Y, --auth-file=<file>    clients say who they are; lines of user:password, for SASL PLAIN too
-D <char>                 delimiter of key prefixes (default ":"); turns "stats detail" on
-Z, --enable-ssl          clients speak TLS, but at Unix sockets and -l notls:<addr>
-o, --extended            options with commas between them:
   - proxy_config:        Lua files of the proxy, with colons between them
   - proxy_arg:           text that the Lua files find in mcp.start_arg
   - proxy_uring:         insist on io_uring
   - io:                  auto, uring or epoll (default: auto, io_uring where the kernel has it)
   - proxy_memprofile:    print once a second what Lua allocates
   - idle_timeout:        seconds after which an idle connection is closed (default: 0, never)
   - ssl_chain_cert:      with -Z: certificate and its chain, in PEM form
   - ssl_key:             with -Z: its private key, without a password (default: ssl_chain_cert)
   - ssl_keyformat:       1 (PEM) or 2 (DER) (default: 1)
   - ssl_verify_mode:     certificates of clients: 0 none, 1 request, 2 require, 3 once (default: 0)
   - ssl_ca_cert:         authorities of clients' certificates, in PEM form
   - ssl_ciphers:         OpenSSL's list of ciphers for TLS 1.2
   - ssl_session_cache:   clients may resume sessions
   - ssl_min_version:     0 (tlsv1.0) to 3 (tlsv1.3) (default: 2)
   - ssl_wbuf_size, ssl_kernel_tls: accepted, without effect
   - ext_path:            file of the flash tier: accepted, values stay in memory

Without effect, as kvferry needs no such tuning: -k -L -r -f -n -N and, of -o, the names that begin
with hash, lru_, slab_, hot_, warm_, ext_, and maxconns_fast, track_sizes, modern and the like; each
may have no_ in front. The log names those that were given.
Not served, and therefore refused: -S (say -Y).
)";
}

}  // namespace kvferry::app
