#include "config/document.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <string_view>

#include "config/key_table.h"
#include "config/reader.h"
#include "config/route_reader.h"
#include "config/scalar.h"

namespace kvferry::config {
namespace {

constexpr std::string_view kHead = R"(# Configuration

<!-- Made from the tables of keys in src/config by `kvferry config keys`; a test keeps both equal. Edit the tables. -->

`kvferry -c FILE` reads YAML. twemproxy's `nutcracker.yml` with memcached pools works unchanged, and our own keys may be
added to its pools. `kvferry check FILE` says whether a file is right and what is wrong with it; `kvferry explain -c FILE KEY`
says which server a key belongs to, and why; `kvferry config show -c FILE` prints every setting with its defaults, and
`kvferry config convert -c FILE` rewrites a file in our own form.

## Shape of a file

A file is one mapping. The key `kvferry` holds what concerns the whole process. Every other key is the name of a pool:
listeners for clients, and the servers behind them.

```yaml
cache:
  listen: 127.0.0.1:22121
  hash: fnv1a_64
  distribution: ketama
  timeout: 400
  servers:
    - 10.0.0.1:11211:1
    - 10.0.0.2:11211:1
```

Several files make one configuration: `-c a.yml -c b.yml`, or `-c DIRECTORY` for all its `*.yml` in the order of their names.
A pool stands in one file, and so does each setting of the process.

## Dialects

A pool has a dialect, which sets its defaults. `dialect:` names it; without that key

- a pool with a key that only Dynomite has is a Dynomite pool; those are recognised, and not available yet;
- a pool with `protocol:` is in our own dialect;
- every other pool is in nutcracker's.

Our keys may be used in nutcracker pools. The weight of a server may be left out, and port 0 (any free port) may be listened
on, in our own dialect only.

## Values

YAML 1.2 in block and flow style with quotes, comments, anchors and aliases; UTF-8; one document of at most 1 MiB, nested at most
16 deep. Tabs for indentation, tags, merge keys and further documents are refused. Values are taken as they are written: `yes` is no
boolean and `1e3` no number. A key given twice, a key without a value and an unknown key are errors.

| type | is written |
|---|---|
| bool | `true` or `false` |
| number | decimal digits, in the range of the key |
| ms | milliseconds (`400`), or with a unit (`400ms`, `2s`, `5m`, `1h`) |
| duration | with a unit: `250ms`, `2s`, `5m`, `1h` |
| size | bytes, or with a unit of 1024: `16kb`, `16mb`, `2gb` |
| address | `host:port`, `[v6]:port`, `/path`, `/path 0660` |
| route | the name of a pool, or a mapping with one key: `{failover: {children: [a, b]}}` |
| server | `host:port:weight`, `/path:weight`, either with a blank and a name behind it |
| secret | the text, or `file:/path`, or `env:NAME`; never printed |
)";

constexpr std::string_view kErrors = R"(
## Errors

Up to 20 errors are collected before the reader gives up; a YAML syntax error ends it at once. Each names file, line and column,
what is wrong and what is allowed, shows the line with a mark, and has at most one hint:

```
redis.yml:7:12: error: pool 'beta': 'timeout' must be a number of milliseconds from 0 to 86400000, or a duration such as 400ms
    7 |   timeout: -1
      |            ^^
  hint: leave the key out, or write 0, to wait for ever
```

`kvferry check --json FILE` prints them as an array of objects with file, line, column, severity, code, pool, key, message and
hint. Warnings and notices do not keep a configuration from being used.

| code | what it is about |
|---|---|
| E-yaml | the file is not YAML, or uses what is not understood |
| E-root | the file is no mapping of pools |
| E-unknown | a key that does not exist |
| E-dialect | a key of another dialect |
| E-dup | a key, pool, address or server name that is there twice |
| E-empty | a key without a value |
| E-bool, E-num, E-enum, E-tag, E-list, E-type | a value of the wrong kind |
| E-range | a value outside its limits, or one that contradicts another |
| E-addr, E-server, E-weight | an address or a server |
| E-missing | a key that must be there |
| E-unsupported | a key or value that this version does not have yet |
| E-file | a file that cannot be read |
| E-tls | a certificate, key, authority or list of ciphers that cannot be used |
| W10 | a server whose weight is so small that it gets no keys |
| W11 | a ketama ring that spreads keys more than 20 % off the weights |
| W40 | a file with a secret that others may read |
| W41 | a certificate that is not valid, or ends to be within 14 days |
| N01 | client_connections is honoured here; twemproxy ignores it |
| N02 | a pool without a timeout: a silent server blocks its clients for ever, as with twemproxy |
)";

std::string_view type_text(const KeyInfo& info) {
  switch (info.type) {
    case ValueType::Bool:
      return "bool";
    case ValueType::Int:
      return "number";
    case ValueType::Millis:
      return "ms";
    case ValueType::Duration:
      return "duration";
    case ValueType::Bytes:
      return "size";
    case ValueType::Enum:
      return "one of";
    case ValueType::Text:
      return "text";
    case ValueType::TwoBytes:
      return "two bytes";
    case ValueType::Secret:
      return "secret";
    case ValueType::Endpoint:
      return "address";
    case ValueType::Mapping:
      return "mapping";
    case ValueType::Servers:
      return "list of servers";
    case ValueType::List:
      return "list";
    case ValueType::Route:
      return "route";
    case ValueType::Routes:
      return "list or mapping of routes";
    case ValueType::Listen:
      break;
  }
  return "address or list";
}

std::string range_text(const KeyInfo& info) {
  switch (info.type) {
    case ValueType::Int:
      return fmt::format("number, {} to {}", info.least, info.most);
    case ValueType::Millis:
    case ValueType::Duration:
      return fmt::format("{}, {} to {}", type_text(info), millis_text(info.least),
                         millis_text(info.most));
    case ValueType::Bytes:
      return fmt::format("size, {} to {}", bytes_text(static_cast<std::uint64_t>(info.least)),
                         bytes_text(static_cast<std::uint64_t>(info.most)));
    case ValueType::Secret:
      return fmt::format("secret, {} to {} bytes", info.least, info.most);
    case ValueType::Enum:
      return fmt::format("one of {}", join(info.choices));
    default:
      return std::string(type_text(info));
  }
}

std::string default_text(const KeyInfo& info) {
  std::string out(info.default_text);
  if (!info.nutcracker_default_text.empty()) {
    out += fmt::format("; nutcracker pools: {}", info.nutcracker_default_text);
  }
  return out.empty() ? "none" : out;
}

std::string row(const KeyInfo& info) {
  return fmt::format("| `{}` | {} | {} | {} |\n", info.name, range_text(info), default_text(info),
                     info.doc);
}

constexpr std::string_view kTableHead = "| key | type | default | meaning |\n|---|---|---|---|\n";

template <typename Target>
std::string table(std::string_view title, std::string_view intro,
                  std::span<const Key<Target>> keys) {
  std::string out = fmt::format("\n## {}\n\n{}\n\n{}", title, intro, kTableHead);
  for (const Key<Target>& key : keys) {
    out += row(key.info);
  }
  return out;
}

std::string pool_table(std::string_view title, std::string_view intro, Origin origin) {
  std::string out = fmt::format("\n## {}\n\n{}\n\n{}", title, intro, kTableHead);
  for (const Key<PoolDraft>& key : pool_keys()) {
    if (key.info.origin == origin) {
      out += row(key.info);
    }
  }
  return out;
}

constexpr std::string_view kRoutesIntro =
    R"(Keys of an entry of `kvferry: routes:`. An entry is a listener whose requests are not all for one pool: native routes, those of
[routelib.md](routelib.md), decide. A route is the name of a pool, or a mapping with one key, its kind; routes may be children of
routes. A pool that routes name needs no listener of its own. [examples/routes.yml](../examples/routes.yml) is a file to begin with.

A get with several keys stays one request for each server when one pool is to have all keys; else each key is asked for by itself.
A value is kept whole while it passes a route. `flush_all` and other commands without a key are for pools, and are refused here.)";

std::string routes_table() {
  std::string out = table("Routes", kRoutesIntro, route_entry_keys());
  out += "\n| route | what it does |\n|---|---|\n";
  for (const RouteKindInfo& kind : route_kinds()) {
    out += fmt::format("| `{}` | {} |\n", kind.word, kind.doc);
  }
  out += "\n| route | argument | type | default | meaning |\n|---|---|---|---|---|\n";
  for (const RouteKindInfo& kind : route_kinds()) {
    for (const Key<RouteDraft>& key : kind.keys) {
      out += fmt::format("| `{}` {}", kind.word, row(key.info));
    }
  }
  return out;
}

}  // namespace

std::string configuration_document() {
  std::string out(kHead);
  out += pool_table("Keys of a pool that twemproxy has", "Names and meanings are twemproxy's.",
                    Origin::Twemproxy);
  out += pool_table("Keys of a pool that are ours", "They may be added to nutcracker pools.",
                    Origin::Kvferry);
  out += table("Listeners", "Keys of an entry of `listen` that is a mapping.", listener_keys());
  out += table("TLS of a listener",
               "Keys of `tls` in an entry of `listen`. Files are named from the directory that "
               "kvferry was started in. A reload reads them again, for connections that are made "
               "from then on.",
               listener_tls_keys());
  out += table("TLS to servers", "Keys of `tls` in a pool.", server_tls_keys());
  out += table("The process", "Keys of `kvferry:`.", process_keys());
  out += table("Log", "Keys of `kvferry: log:`.", log_keys());
  out += table("Admin", "Keys of `kvferry: admin:`.", admin_keys());
  out += table("Store", "Keys of `kvferry: store:`.", store_keys());
  out += routes_table();
  out += kErrors;
  return out;
}

}  // namespace kvferry::config
