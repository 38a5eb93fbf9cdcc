#!/usr/bin/python3
"""Checks the form of src/ against docs/style.md: which room includes which, sizes, and a few forbidden words.

Usage: check_layers.py [ROOT]

The rules about includes are read from the table between the markers "layers: begin" and "layers: end" in
docs/style.md, so that the document cannot drift from the check. Every problem is one line: file:line: what is wrong.
Exit status 0 when there is none. Notes (long files) do not fail.
"""

import re
import sys
from pathlib import Path

FILE_LINES_MAX = 1000
FILE_LINES_GOOD = 500
README_LINES_MAX = 40
SOURCE_SUFFIXES = {".h", ".cc"}
# Folders whose C++ files get the checks that do not depend on rooms.
CODE_FOLDERS = ["src", "tests", "fuzz", "bench"]
GROUPS = ["protocol"]  # Folders of src/ that hold rooms and are none themselves.

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b")
# An open end needs the number of an issue right behind it.
OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
CODE_SPAN = re.compile(r"`([^`]+)`")


class TableError(Exception):
    """The table of rooms is missing or cannot be read."""


def read_table(text):
    """Returns {room: set of names}, in the order of the table; a name is a room, a group, a header or "all"."""
    begin, end = text.find("<!-- layers: begin -->"), text.find("<!-- layers: end -->")
    if begin < 0 or end < begin:
        raise TableError("docs/style.md: no table between the markers 'layers: begin' and 'layers: end'")
    table = {}
    for line in text[begin:end].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| `") or len(cells) < 3:
            continue
        room = CODE_SPAN.findall(cells[0])[0]
        if room in table:
            raise TableError(f"docs/style.md: room {room} has two rows")
        table[room] = {"all"} if cells[1] == "all" else set(CODE_SPAN.findall(cells[1]))
    if not table:
        raise TableError("docs/style.md: the table of rooms has no rows")
    return table


def find_cycle(table):
    """Returns the rooms of one cycle of the table, or an empty list. A single header counts as its room."""
    def below(room):
        names = set(table) - {room} if "all" in table[room] else table[room]
        return {other for name in names for other in table
                if other != room and (other == name or other.startswith(name + "/") or name.startswith(other + "/"))}

    done, path = set(), []

    def visit(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return []
        path.append(room)
        for other in sorted(below(room)):
            cycle = visit(other)
            if cycle:
                return cycle
        path.pop()
        done.add(room)
        return []

    for room in table:
        cycle = visit(room)
        if cycle:
            return cycle
    return []


def room_of(path):
    """Returns the room of a path relative to src/, or "" for what lies in none."""
    parts = path.split("/")
    count = 2 if parts[0] in GROUPS else 1
    return "/".join(parts[:count]) if len(parts) > count else ""


def is_allowed(room, included, table):
    """Tells whether a file of `room` may include the header `included` (a path relative to src/)."""
    allowed = table[room]
    target = room_of(included)
    return ("all" in allowed or target == room or target in allowed or included in allowed
            or any(target.startswith(name + "/") for name in allowed))


def check_includes(path, lines, table):
    room = room_of(path)
    if not room:
        yield 1, "lies in no room"
        return
    if room not in table:
        yield 1, f"room {room} has no row in the table of docs/style.md"
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = room_of(match[1])
        if not target:
            yield number, f'include "{match[1]}" by its path below src/, or with <> when it is not ours'
        elif not is_allowed(room, match[1], table):
            allowed = " ".join(sorted(table[room])) or "nothing of ours"
            yield number, f'{room} may not include "{match[1]}"; it may include: {allowed}'


def check_text(path, lines):
    """Checks that hold for every C++ file."""
    if len(lines) > FILE_LINES_MAX:
        yield len(lines), f"{len(lines)} lines; the limit is {FILE_LINES_MAX}"
    if path.endswith(".h") and not any(line.strip() == "#pragma once" for line in lines):
        yield 1, "a header needs #pragma once"
    for number, line in enumerate(lines, 1):
        if USING_NAMESPACE.match(line):
            yield number, "no using namespace"
        if OPEN_END.search(line):
            yield number, "an open end needs an issue: TODO(#123): ..."


def check_rooms(src, table):
    """Every room has code, a row and a short README.md."""
    folders = {path.relative_to(src).as_posix() for path in src.glob("*") if path.is_dir()}
    folders -= set(GROUPS)
    for group in GROUPS:
        folders |= {path.relative_to(src).as_posix() for path in (src / group).glob("*") if path.is_dir()}
    for room in sorted(folders - set(table)):
        yield f"src/{room}:1: has no row in the table of docs/style.md"
    for room in sorted(set(table) - folders):
        yield f"docs/style.md:1: the table names room {room}, which does not exist"
    for room in sorted(folders):
        readme = src / room / "README.md"
        if not readme.is_file():
            yield f"src/{room}/README.md:1: is missing"
        elif (count := len(readme.read_text(encoding="utf-8").splitlines())) > README_LINES_MAX:
            yield f"src/{room}/README.md:{count}: {count} lines; the limit is {README_LINES_MAX}"


def check_tree(root):
    """Returns (problems, notes), each a list of lines."""
    problems, notes = [], []
    try:
        table = read_table((root / "docs/style.md").read_text(encoding="utf-8"))
    except (OSError, TableError) as error:
        return [str(error)], []
    cycle = find_cycle(table)
    if cycle:
        problems.append(f"docs/style.md:1: the table of rooms has a cycle: {' -> '.join(cycle)}")
    problems += check_rooms(root / "src", table)
    for folder in CODE_FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SOURCE_SUFFIXES or "node_modules" in file.parts:
                continue
            name = file.relative_to(root).as_posix()
            lines = file.read_text(encoding="utf-8").splitlines()
            found = list(check_text(name, lines))
            if folder == "src":
                found += check_includes(file.relative_to(root / "src").as_posix(), lines, table)
            problems += [f"{name}:{number}: {text}" for number, text in found]
            if FILE_LINES_GOOD < len(lines) <= FILE_LINES_MAX:
                notes.append(f"{name}: {len(lines)} lines (good: at most {FILE_LINES_GOOD})")
    return problems, notes


def main(arguments):
    root = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).resolve().parent.parent
    problems, notes = check_tree(root)
    for note in notes:
        print(f"note: {note}")
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(problems)} problems, {len(notes)} notes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
