// Words of the enumerations, in the order of their C++ enumerators.
//
// Threads: constant data.
#pragma once

#include <array>
#include <string_view>

namespace kvferry::config {

inline constexpr std::array<std::string_view, 16> kHashWords = {
    "one_at_a_time", "md5",   "crc16",  "crc32",   "crc32a",  "fnv1_64", "fnv1a_64",   "fnv1_32",
    "fnv1a_32",      "hsieh", "murmur", "jenkins", "murmur3", "xxh3",    "crc16_slot", "atol"};
inline constexpr std::array<std::string_view, 6> kDistributionWords = {
    "ketama", "modula", "random", "jump", "rendezvous", "ring_memcached"};
inline constexpr std::array<std::string_view, 2> kNamingWords = {"twemproxy", "libmemcached"};
inline constexpr std::array<std::string_view, 2> kOnDownWords = {"keep", "rehash"};
inline constexpr std::array<std::string_view, 2> kOnBadSnapshotWords = {"refuse", "start_empty"};
inline constexpr std::array<std::string_view, 3> kOnPartialWords = {"error", "element", "null"};
inline constexpr std::array<std::string_view, 2> kSameSlotWords = {"backend", "strict"};
inline constexpr std::array<std::string_view, 2> kErrorStyleWords = {"kvferry", "twemproxy"};
inline constexpr std::array<std::string_view, 3> kProtocolWords = {"memcache", "redis", "store"};
inline constexpr std::array<std::string_view, 4> kLaterProtocolWords = {
    "redis_cluster", "redis_sentinel", "ring", "auto"};
inline constexpr std::array<std::string_view, 3> kListenerProtocolWords = {"memcache", "redis",
                                                                           "auto"};
inline constexpr std::array<std::string_view, 1> kLaterOnDownWords = {"next"};
inline constexpr std::array<std::string_view, 3> kDialectWords = {"nutcracker", "dynomite",
                                                                  "kvferry"};
inline constexpr std::array<std::string_view, 3> kListenerVerifyWords = {"none", "optional",
                                                                         "required"};
inline constexpr std::array<std::string_view, 3> kServerVerifyWords = {"none", "ca", "full"};
inline constexpr std::array<std::string_view, 2> kTlsVersionWords = {"1.2", "1.3"};
inline constexpr std::array<std::string_view, 3> kIoWords = {"auto", "uring", "epoll"};
inline constexpr std::array<std::string_view, 5> kLogLevelWords = {"error", "warning", "notice",
                                                                   "info", "debug"};
inline constexpr std::array<std::string_view, 2> kLogFormatWords = {"default", "json"};

}  // namespace kvferry::config
