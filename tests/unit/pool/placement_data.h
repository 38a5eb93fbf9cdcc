// Reads the placement vectors of tests/data/placement.
#pragma once

#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pool/key_hash.h"
#include "pool/options.h"
#include "pool/placement.h"
#include "pool/server_label.h"

namespace kvferry::pool {

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

inline std::uint64_t to_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  EXPECT_TRUE(result.ec == std::errc() && result.ptr == text.data() + text.size()) << text;
  return number;
}

inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    int byte = 0;
    std::from_chars(hex.data() + at, hex.data() + at + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

/// A file of comma-separated fields without quotes, with a head line.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::size_t column(std::string_view name) const {
    for (std::size_t at = 0; at < head.size(); ++at) {
      if (head[at] == name) {
        return at;
      }
    }
    ADD_FAILURE() << "no column " << name;
    return 0;
  }
};

/// `folder` is below tests/.
inline Table read_table(const std::string& name, std::string_view folder = "/data/placement/") {
  std::ifstream file(std::string(KVF_TEST_DATA).append(folder) + name);
  EXPECT_TRUE(file.is_open()) << name;
  Table table;
  std::string line;
  while (std::getline(file, line)) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    std::vector<std::string> fields = split(line, ',');
    if (table.head.empty()) {
      table.head = std::move(fields);
    } else {
      EXPECT_EQ(fields.size(), table.head.size()) << name << ": " << line;
      table.rows.push_back(std::move(fields));
    }
  }
  return table;
}

/// A server from an entry such as "host:port:weight name" or "/path:weight name".
inline ServerOptions server_of(std::string_view entry) {
  ServerOptions server;
  const std::size_t space = entry.find(' ');
  if (space != std::string_view::npos) {
    server.name = entry.substr(space + 1);
    entry = entry.substr(0, space);
  }
  const std::size_t weight_at = entry.rfind(':');
  server.weight = static_cast<std::uint32_t>(to_number(entry.substr(weight_at + 1)));
  entry = entry.substr(0, weight_at);
  server.is_unix = entry.starts_with('/');
  if (!server.is_unix) {
    const std::size_t port_at = entry.rfind(':');
    server.port = static_cast<std::uint16_t>(to_number(entry.substr(port_at + 1)));
    entry = entry.substr(0, port_at);
  }
  server.host = entry;
  fill_labels(server);
  return server;
}

inline std::vector<ServerOptions> servers_of(const std::vector<std::string>& entries) {
  std::vector<ServerOptions> servers;
  servers.reserve(entries.size());
  for (const std::string& entry : entries) {
    servers.push_back(server_of(entry));
  }
  return servers;
}

using ServerLists = std::map<std::string, std::vector<ServerOptions>, std::less<>>;

inline ServerLists read_lists(const std::string& name,
                              std::string_view folder = "/data/placement/") {
  const Table table = read_table(name, folder);
  ServerLists lists;
  for (const auto& row : table.rows) {
    std::vector<ServerOptions>& list = lists[row[table.column("list")]];
    EXPECT_EQ(to_number(row[table.column("index")]), list.size());
    list.push_back(server_of(row[table.column("server_entry")]));
  }
  return lists;
}

/// Bytes of the keys, by id.
inline std::vector<std::string> read_keys() {
  const Table table = read_table("keys.csv");
  std::vector<std::string> keys;
  for (const auto& row : table.rows) {
    EXPECT_EQ(to_number(row[table.column("key_id")]), keys.size());
    keys.push_back(from_hex(row[table.column("key_hex")]));
    EXPECT_EQ(keys.back().size(), to_number(row[table.column("bytes")]));
  }
  return keys;
}

inline HashKind hash_named(std::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(HashKind::Atol); ++kind) {
    if (name_of(static_cast<HashKind>(kind)) == name) {
      return static_cast<HashKind>(kind);
    }
  }
  ADD_FAILURE() << "no hash is called " << name;
  return HashKind::Atol;
}

inline DistributionKind distribution_named(std::string_view name) {
  EXPECT_TRUE(name == "ketama" || name == "modula") << name;
  return name == "ketama" ? DistributionKind::Ketama : DistributionKind::Modula;
}

inline PlacementOptions options_of(HashKind hash, DistributionKind distribution,
                                   std::string_view hash_tag = {}) {
  PlacementOptions options;
  options.hash = hash;
  options.distribution = distribution;
  options.hash_tag = hash_tag;
  return options;
}

using PlacementPointer = std::shared_ptr<const Placement>;

inline PlacementPointer place(const PlacementOptions& options,
                              const std::vector<ServerOptions>& servers,
                              std::vector<bool> is_live = {}) {
  is_live.resize(servers.size(), is_live.empty());
  auto made = Placement::make(options, servers, is_live);
  EXPECT_TRUE(made.has_value());
  return made.has_value() ? *made : nullptr;
}

inline std::uint32_t select(const PlacementPointer& placement, std::string_view key) {
  std::uint64_t random_state = 1;
  return placement->select(key, random_state);
}

}  // namespace kvferry::pool
