#!/usr/bin/python3
"""Checks that documents do not promise what is not there.

Usage: check_docs.py [ROOT]

- Every relative link of every Markdown file leads to a file, and its #anchor to a heading.
- A code block below `<!-- tested: NAME -->` is run by a test: some file below tests/ calls document_block(..., "NAME").
- A code block below `<!-- same as: FILE -->` equals that file.
- Every file in examples/ is read by a test: tests/system/test_examples.py knows its suffix.

Every problem is one line: file:line: what is wrong. Exit status 0 when there is none.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```")
TESTED = re.compile(r"^<!-- tested: ([\w-]+) -->$")
SAME_AS = re.compile(r"^<!-- same as: (\S+) -->$")
BLOCK_CALL = re.compile(r'document_block\([^)]*"([\w-]+)"\)')
SKIPPED_FOLDERS = {"build", "node_modules", ".git", "third_party", ".cache"}
EXAMPLES_TEST = "tests/system/test_examples.py"


def markdown_files(root):
    return sorted(file for file in root.rglob("*.md")
                  if not SKIPPED_FOLDERS & set(file.relative_to(root).parts[:-1]))


def slug(heading):
    """The anchor that a heading gets: lower case, blanks to hyphens, other signs dropped."""
    text = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    found, fenced = set(), False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := re.match(r"#+\s+(.*)", line)):
            found.add(slug(match[1]))
    return found


def blocks(text):
    """Yields (line, mark, body): code blocks that directly follow a comment of their own line."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("<!-- ") or number + 1 == len(lines) or not FENCE.match(lines[number + 1]):
            continue
        body = []
        for following in lines[number + 2:]:
            if FENCE.match(following):
                break
            body.append(following + "\n")
        yield number + 1, line, "".join(body)


def document_block(path, name):
    """Returns the text of the code block marked `<!-- tested: NAME -->` in the file `path`, for the tests that run it."""
    for _, mark, body in blocks(Path(path).read_text(encoding="utf-8")):
        match = TESTED.match(mark)
        if match and match[1] == name:
            return body
    raise KeyError(f"{path} has no code block marked 'tested: {name}'")


def check_links(root, file, text):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            target = match[1] or match[2]
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            path, _, anchor = target.partition("#")
            goal = (file.parent / path).resolve() if path else file
            if not goal.exists():
                yield number, f"link to {target}, which does not exist"
            elif root.resolve() not in [goal, *goal.parents] and goal != file:
                yield number, f"link to {target} leaves the tree"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text(encoding="utf-8")):
                yield number, f"link to {target}: no such heading"


def check_blocks(root, text, tested):
    for number, mark, body in blocks(text):
        if match := TESTED.match(mark):
            if match[1] not in tested:
                yield number, f'block "{match[1]}" is marked as tested, and no test calls document_block for it'
        elif match := SAME_AS.match(mark):
            file = root / match[1]
            if not file.is_file():
                yield number, f"block claims to equal {match[1]}, which does not exist"
            elif file.read_text(encoding="utf-8") != body:
                yield number, f"block differs from {match[1]}"


def check_examples(root):
    examples = [file for file in sorted((root / "examples").rglob("*")) if file.is_file() and file.suffix != ".md"]
    test = root / EXAMPLES_TEST
    text = test.read_text(encoding="utf-8") if test.is_file() else ""
    for file in examples:
        if f'"*{file.suffix}"' not in text:
            yield f"{file.relative_to(root)}:1: no test in {EXAMPLES_TEST} reads examples ending in {file.suffix}"


def check_tree(root):
    tested = set()
    for file in (root / "tests").rglob("*.py"):
        if "node_modules" not in file.parts:
            tested |= set(BLOCK_CALL.findall(file.read_text(encoding="utf-8")))
    problems = []
    for file in markdown_files(root):
        text = file.read_text(encoding="utf-8")
        name = file.relative_to(root)
        for number, what in [*check_links(root, file, text), *check_blocks(root, text, tested)]:
            problems.append(f"{name}:{number}: {what}")
    return problems + list(check_examples(root))


def main(arguments):
    root = Path(arguments[1]) if len(arguments) > 1 else Path(__file__).resolve().parent.parent
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    print(f"check_docs: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
