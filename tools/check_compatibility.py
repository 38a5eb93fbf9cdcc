#!/usr/bin/python3
"""Checks that docs/compatibility.md names tests that exist, and leaves none of the API out.

Usage: check_compatibility.py [ROOT]

- Every case, unit test and system test that the tables name exists; a * in the name of a case stands for at least one.
- Every case in tests/cases/lua and tests/cases/better/lua is named.
- Every function in section 21 of docs/lua.md is named.

Every problem is one line: file:line: what is wrong. Exit status 0 when there is none.
"""

import fnmatch
import re
import sys
from pathlib import Path

DOCUMENT = "docs/compatibility.md"
API = "docs/lua.md"
CASES = "tests/cases"
CASE_FOLDERS = ("lua", "better/lua")
NAME = re.compile(r"`([^`]+)`")
CASE_NAME = re.compile(r"(?:lua|better)/[\w/*-]+")
UNIT_NAME = re.compile(r"[A-Z]\w+\.[A-Z]\w+")
SYSTEM_NAME = re.compile(r"(test_\w+\.py)(?:::(\w+))?")
UNIT_TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)


def cases_of(root):
    """Names as the document spells them: lua/wait/cfd."""
    folder = root / CASES
    return {str(file.relative_to(folder).with_suffix("")) for part in CASE_FOLDERS for file in (folder / part).rglob("*.case")}


def unit_tests_of(root):
    return {"%s.%s" % found for file in (root / "tests" / "unit").rglob("*.cc")
            for found in UNIT_TEST.findall(file.read_text(encoding="utf-8"))}


def has_system_test(root, file, function):
    path = root / "tests" / "system" / file
    return path.is_file() and (function is None or re.search(r"^def %s\(" % function, path.read_text(encoding="utf-8"), re.MULTILINE))


def names_of(text):
    """Yields (line, name) of everything in backquotes in the tables."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            for found in NAME.finditer(line):
                yield number, found[1]


def functions_of(text):
    """What the tables of section 21 list."""
    section = text.split("\n## 21.")[1].split("\n## ")[0]
    return {name for _, name in names_of(section) if re.fullmatch(r"[a-z]\w*", name)} - {"mcp"}


def check_tree(root):
    cases, unit_tests = cases_of(root), unit_tests_of(root)
    unnamed, words, problems = set(cases), set(), []
    for number, name in names_of((root / DOCUMENT).read_text(encoding="utf-8")):
        if CASE_NAME.fullmatch(name):
            found = set(fnmatch.filter(cases, name))
            unnamed -= found
            exists = bool(found)
        elif UNIT_NAME.fullmatch(name):
            exists = name in unit_tests
        elif match := SYSTEM_NAME.fullmatch(name):
            exists = has_system_test(root, match[1], match[2])
        else:
            words.add(name)
            continue
        if not exists:
            problems.append(f"{DOCUMENT}:{number}: there is no test {name}")
    problems += [f"{DOCUMENT}:1: {name} is not named" for name in sorted(unnamed)]
    missing = functions_of((root / API).read_text(encoding="utf-8")) - words
    problems += [f"{DOCUMENT}:1: no test is named for the function {name}" for name in sorted(missing)]
    return problems


def main(arguments):
    root = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).resolve().parent.parent
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    print(f"check_compatibility: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
