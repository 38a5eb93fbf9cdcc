#!/usr/bin/env python3
"""Records where libmemcached's ketama places keys, for libmemcached_test.cc.

Calls the real library (libmemcached.so.11) through ctypes; no server is needed, as the library tells
the index of a key's server without a connection. Writes libmemcached.csv beside this file.

Columns after the key are named <hash>/<list>/<mode>: mode `plain` is MEMCACHED_BEHAVIOR_KETAMA with
that key hash and without weights, `weighted` is MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, after which the key
hash is set (by itself that behaviour sets md5).
"""
import ctypes
import os
import random

HASHES = {"one_at_a_time": 0, "md5": 1, "crc32": 2, "fnv1_64": 3, "fnv1a_64": 4, "fnv1_32": 5,
          "fnv1a_32": 6, "murmur": 8, "jenkins": 9}
BEHAVIOR_HASH = 2
BEHAVIOR_KETAMA = 3
BEHAVIOR_KETAMA_WEIGHTED = 16

# Entries as in a pool's configuration file: host:port:weight, or /path:weight.
LISTS = {
    "two": ["127.0.0.1:11211:1", "127.0.0.1:11212:1"],
    "mixed": ["127.0.0.1:11211:1", "cache-b.example:11211:1", "10.0.0.7:21000:1", "/tmp/kvf-a.sock:1"],
    "eleven": ["10.1.0.%d:11300:1" % (n + 1) for n in range(11)],
    "weights": ["127.0.0.1:11211:3", "127.0.0.1:11212:1", "10.0.0.7:21000:5", "/tmp/kvf-a.sock:2"],
    "lopsided": ["10.0.0.1:11211:1", "10.0.0.2:11211:500", "10.0.0.3:11311:499"],
}
KEY_COUNT = 400


def load_library():
    library = ctypes.CDLL("libmemcached.so.11")
    library.memcached_create.restype = ctypes.c_void_p
    library.memcached_create.argtypes = [ctypes.c_void_p]
    library.memcached_free.argtypes = [ctypes.c_void_p]
    library.memcached_behavior_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
    library.memcached_server_add_with_weight.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint16, ctypes.c_uint32]
    library.memcached_server_add_unix_socket_with_weight.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32]
    library.memcached_generate_hash.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.memcached_generate_hash.restype = ctypes.c_uint32
    return library


def add_server(library, client, entry):
    rest, weight = entry.rsplit(":", 1)
    if rest.startswith("/"):
        code = library.memcached_server_add_unix_socket_with_weight(client, rest.encode(), int(weight))
    else:
        host, port = rest.rsplit(":", 1)
        code = library.memcached_server_add_with_weight(client, host.encode(), int(port), int(weight))
    assert code == 0, (entry, code)


def make_client(library, hash_number, entries, weighted):
    client = library.memcached_create(None)
    behavior = BEHAVIOR_KETAMA_WEIGHTED if weighted else BEHAVIOR_KETAMA
    for name, value in ((behavior, 1), (BEHAVIOR_HASH, hash_number)):
        assert library.memcached_behavior_set(client, name, value) == 0
    for entry in entries:
        add_server(library, client, entry)
    return client


def make_keys():
    chosen = random.Random(20)
    keys = [b"foo", b"user:1000", b"123456789", b"caf\xc3\xa9", b"\xff\x80z"]
    while len(keys) < KEY_COUNT:
        keys.append(bytes(chosen.randrange(33, 256) for _ in range(chosen.randrange(1, 40))))
    return [key for key in keys if 0x7f not in key]


def main():
    library = load_library()
    keys = make_keys()
    columns = {}
    for hash_name, hash_number in HASHES.items():
        for list_name, entries in LISTS.items():
            has_weights = any(not entry.endswith(":1") for entry in entries)
            # A weight above 1 switches the library to weighted ketama by itself.
            for mode in ["weighted"] if has_weights else ["plain", "weighted"]:
                client = make_client(library, hash_number, entries, mode == "weighted")
                columns[f"{hash_name}/{list_name}/{mode}"] = [
                    library.memcached_generate_hash(client, key, len(key)) for key in keys]
                library.memcached_free(client)

    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "libmemcached.csv"), "w", encoding="ascii") as file:
        file.write(",".join(["key_hex", *columns]) + "\n")
        for at, key in enumerate(keys):
            file.write(",".join([key.hex(), *(str(column[at]) for column in columns.values())]) + "\n")
    with open(os.path.join(here, "libmemcached-lists.csv"), "w", encoding="ascii") as file:
        file.write("list,index,server_entry\n")
        for name, entries in LISTS.items():
            for at, entry in enumerate(entries):
                file.write(f"{name},{at},{entry}\n")


if __name__ == "__main__":
    main()
