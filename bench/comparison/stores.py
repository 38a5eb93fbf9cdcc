"""kvferry as a plain store beside memcached: operations per processor second, items in the same memory, hit ratios."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from comparison.memory import connect, receive_until
from comparison.servers import Field, built_tool, load_generator
from comparison.speed import Speed, report, write_csv

MEMCACHED = "memcached"
HITS_SOURCES = ("hits_client.cc", "hits/trace.cc")
TRACES = ("zipf0.7", "zipf0.9", "zipf1.0", "zipf1.1", "zipf0.7-scans", "zipf0.9-scans", "zipf1.0-scans", "zipf1.1-scans", "zipf0.9-loop",
          "zipf0.9-ttls", "zipf0.9-sizes", "zipf0.9-all")
SMALL_ITEM_BYTES = 100  # Less than any item of a fill takes, so that more are written than fit.


def compare_store(options):
    with Field(options) as field:
        field.start_stores(options.megabytes)
        speed = Speed(field, options)
        speed.fill_all()
        rows = speed.run_all()
    write_csv(rows, options.out)
    report(rows, MEMCACHED)
    print("\nRuns: %s. Medians of %d; one thread on core %d, the load on core %d. Operations per processor second are the inverse of the CPU ratio:"
          " wanted are 0.77 or less (1.3 times) at depth 32, 0.91 or less (1.1 times) at depth 1."
          % (Path(options.out), options.reps, options.proxy_core, options.load_core))
    return 1 if any(row["refused"] or row["wrong"] or row["misses"] for row in rows) else 0


def stats_of(server) -> dict:
    with connect(server.port) as client:
        client.sendall(b"stats\r\n")
        lines = receive_until(client, b"END\r\n").decode().split("\r\n")
    return dict(line.split(" ", 2)[1:] for line in lines if line.startswith("STAT "))


def fill_beyond(server, generator, options, key_bytes):
    """Writes about twice as many items as fit."""
    keys = 2 * options.megabytes * (1 << 20) // SMALL_ITEM_BYTES
    subprocess.run([str(generator), "--port", str(server.port), "--op", "fill", "--keys", str(keys), "--key-bytes", str(key_bytes),
                    "--value-bytes", str(options.value_bytes), "--connections", "4", "--depth", "64", "--stall", "60"],
                   check=True, stdout=subprocess.DEVNULL)


def compare_items(options):
    """Each length of keys begins with fresh servers."""
    generator = load_generator(options.load)
    print("| key bytes | system | items | RSS, KiB | items per MiB of RSS | times memcached |\n|--:|---|--:|--:|--:|--:|")
    worst = None
    for key_bytes in options.key_bytes:
        with Field(options) as field:
            field.start_stores(options.megabytes)
            reference = None
            for server in field.proxies:
                fill_beyond(server, generator, options, key_bytes)
                time.sleep(1)
                items, rss = int(stats_of(server)["curr_items"]), server.rss_kb()
                density = items / rss * 1024
                reference = density if server.name == MEMCACHED else reference
                ratio = density / reference
                if server.name != MEMCACHED:
                    worst = ratio if worst is None else min(worst, ratio)
                print("| %d | %s | %d | %d | %.0f | %.2f |" % (key_bytes, server.name, items, rss, density, ratio), flush=True)
    print("\nThe least ratio is %.2f; wanted are 1.30." % worst)
    return 0


def play_trace(server, tool, options, trace, seed) -> float:
    done = subprocess.run([str(tool), "--port", str(server.port), "--trace", trace, "--keys", str(options.keys), "--accesses",
                           str(options.accesses), "--seed", str(seed)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["hit_percent"]


def compare_hits(options):
    """Every run begins with fresh, empty servers; both have the same -m."""
    tool = built_tool("kvferry-hits", HITS_SOURCES, "hits/*.h")
    print("| trace | system | hits, % | spread | points to memcached | RSS, KiB |\n|---|---|--:|---|--:|--:|")
    for trace in options.traces:
        found = {}
        for seed in range(1, options.reps + 1):
            with Field(options) as field:
                field.start_stores(options.megabytes)
                for server in field.proxies:
                    found.setdefault(server.name, []).append((play_trace(server, tool, options, trace, seed), server.rss_kb()))
            print("%s, seed %d done" % (trace, seed), file=sys.stderr)
        reference = [hits for hits, _ in found[MEMCACHED]]
        for name, runs in found.items():
            hits = [each for each, _ in runs]
            gain = statistics.median(mine - theirs for mine, theirs in zip(hits, reference))
            print("| %s | %s | %.2f | %.2f-%.2f | %+.2f | %d |" % (trace, name, statistics.median(hits), min(hits), max(hits), gain,
                                                              statistics.median(rss for _, rss in runs)), flush=True)
    print("\nBoth were given %d MiB (-m), %d keys, %d accesses; the first third fills the caches and does not count."
          % (options.megabytes, options.keys, options.accesses))
    return 0
