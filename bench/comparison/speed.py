"""Processor time per request, throughput and latency, as ratios of paired runs."""

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from comparison.servers import Field, load_generator

OPERATIONS = ("get", "set", "mix", "mget")
KEYS, VALUE_BYTES, KEYS_PER_GET = 20000, 100, 10
TRIES = 3
COLUMNS = ("op connections depth rep system ops secs ops_s cpu_s cpu_s_per_million p50_us p99_us p999_us misses refused wrong "
           "load_cpu_s foreign").split()


def busy_seconds() -> float:
    """Processor time that the machine has spent, over all cores."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


class Speed:
    def __init__(self, field: Field, options):
        self.field, self.options = field, options
        self.generator = load_generator(options.load)

    def load_argv(self, port, operation, connections, depth, seed):
        return [str(self.generator), "--port", str(port), "--op", operation, "--connections", str(connections), "--depth", str(depth),
                "--seconds", str(self.options.seconds), "--keys", str(KEYS), "--value-bytes", str(VALUE_BYTES),
                "--keys-per-get", str(KEYS_PER_GET), "--seed", str(seed), "--marks"]

    def fill(self, proxy=None):
        argv = self.load_argv((proxy or self.field.proxies[0]).port, "fill", 4, 16, 1)
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)

    def fill_all(self):
        """For stores, which have no backends in common."""
        for proxy in self.field.proxies:
            self.fill(proxy)

    def snapshot(self, proxy):
        ours = sum(server.cpu_seconds() for server in self.field.servers)
        return proxy.cpu_seconds(), ours, busy_seconds(), time.monotonic()

    def load(self, proxy, operation, depth, rep):
        """What the load reports, and snapshots at the beginning and the end of what it measures."""
        argv = self.load_argv(proxy.port, operation, self.options.connections, depth, rep)
        marks = []
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
            try:
                for _ in range(2):
                    if "mark" not in child.stdout.readline():
                        raise RuntimeError("the load on %s ended early with status %s" % (proxy.name, child.wait()))
                    marks.append(self.snapshot(proxy))
                result = json.loads(child.stdout.read())
            except BaseException:
                child.kill()
                raise
        if child.returncode != 0:
            raise RuntimeError("the load on %s failed: %s" % (proxy.name, result))
        return result, marks

    def run_once(self, proxy, operation, depth, rep) -> dict:
        connections = self.options.connections
        result, marks = self.load(proxy, operation, depth, rep)
        if result["ops"] == 0:
            raise RuntimeError("%s answered nothing in %.2f s of %s at depth %d: the machine is too busy, or --seconds too short"
                               % (proxy.name, result["secs"], operation, depth))
        cpu, ours, busy, wall = (after - before for before, after in zip(*marks))
        return {
            "op": operation, "connections": connections, "depth": depth, "rep": rep, "system": proxy.name, "ops": result["ops"],
            "secs": result["secs"], "ops_s": result["ops_s"], "cpu_s": round(cpu, 6),
            "cpu_s_per_million": round(cpu / result["ops"] * 1e6, 4), "p50_us": result["p50_us"], "p99_us": result["p99_us"],
            "p999_us": result["p999_us"], "misses": result["misses"], "refused": result["refused"], "wrong": result["wrong"],
            "load_cpu_s": result["cpu_s"], "foreign": round(max(0.0, busy - ours - result["cpu_s"]) / wall, 3),
        }

    def run(self, proxy, operation, depth, rep) -> dict:
        """The quietest of a few tries; one is enough while nobody else uses the machine."""
        best = None
        for _ in range(TRIES):
            row = self.run_once(proxy, operation, depth, rep)
            if best is None or row["foreign"] < best["foreign"]:
                best = row
            if best["foreign"] <= self.options.max_foreign:
                break
        return best

    def run_all(self):
        rows = []
        for rep in range(1, self.options.reps + 1):
            for operation in self.options.ops.split(","):
                for depth in self.options.depths:
                    # The order changes from one repetition to the next, so that a drift favours nobody.
                    order = self.field.proxies if rep % 2 else self.field.proxies[::-1]
                    rows += [self.run(proxy, operation, depth, rep) for proxy in order]
                    print("rep %d %s depth %d done" % (rep, operation, depth), file=sys.stderr)
        return rows


def paired_ratio(mine, theirs, column):
    """The median of the ratios of runs of the same repetition."""
    ratios = [row[column] / theirs[rep][column] for rep, row in mine.items() if rep in theirs and theirs[rep][column]]
    return statistics.median(ratios) if ratios else None


def report(rows, reference="nutcracker"):
    """Tables of medians. Ratios to the reference are medians of paired ratios; the spread is that of the CPU ratio."""
    cells = {}
    for row in rows:
        cells.setdefault((row["op"], row["connections"], row["depth"]), {}).setdefault(row["system"], {})[row["rep"]] = row
    print("| op | depth | system | CPU s per million | ratio | spread | requests/s | ratio | p50 us | p99 us | p99.9 us | p99 ratio | foreign |")
    print("|---|--:|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for (operation, _, depth), systems in cells.items():
        theirs = systems.get(reference, {})
        for system, mine in sorted(systems.items()):
            def middle(column, mine=mine):
                return statistics.median(row[column] for row in mine.values())

            def ratio(column, mine=mine, theirs=theirs):
                value = paired_ratio(mine, theirs, column)
                return "-" if value is None else "%.2f" % value
            spread = [row["cpu_s_per_million"] / theirs[rep]["cpu_s_per_million"] for rep, row in mine.items() if rep in theirs]
            print("| %s | %d | %s | %.2f | %s | %s | %.0f | %s | %.0f | %.0f | %.0f | %s | %.2f |" % (
                operation, depth, system, middle("cpu_s_per_million"), ratio("cpu_s_per_million"),
                "%.2f-%.2f" % (min(spread), max(spread)) if spread else "-", middle("ops_s"), ratio("ops_s"), middle("p50_us"),
                middle("p99_us"), middle("p999_us"), ratio("p99_us"), middle("foreign")))


def write_csv(rows, path):
    with open(path, "w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def compare_speed(options):
    with Field(options) as field:
        field.start_backends()
        field.start_proxies()
        field.start_scripts(options.routes)
        speed = Speed(field, options)
        speed.fill()
        rows = speed.run_all()
    write_csv(rows, options.out)
    report(rows, options.reference)
    print("\nRuns: %s. Medians of %d; one worker on core %d, load and backends on core %d."
          % (Path(options.out), options.reps, options.proxy_core, options.load_core))
    if any(row["refused"] or row["wrong"] for row in rows):
        print("There were error replies; see the file.")
        return 1
    return 0
