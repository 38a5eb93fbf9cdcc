#!/bin/bash
# Runs clang-tidy-19 on C++ sources, with the compile commands of the preset tidy.
#
# Usage: tools/tidy.sh [--changed | --all | FILE...]
#
# --changed (the default): sources that differ from KVFERRY_TIDY_BASE where that is set, else from where this branch left
# origin/main, or from the last commit but one where there is no such branch, uncommitted changes included; a changed
# header brings the sources that include it.
set -euo pipefail
cd "$(dirname "$0")/.."

changed_files() {
  local base
  # Without history every source counts as changed.
  git rev-parse -q --verify HEAD >/dev/null 2>&1 || { all_sources; return; }
  base=${KVFERRY_TIDY_BASE:-$(git merge-base HEAD origin/main 2>/dev/null || true)}
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse --verify -q HEAD~1 || git rev-parse HEAD)
  fi
  { git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | sort -u
}

all_sources() { find src tests fuzz bench -name node_modules -prune -o -name '*.cc' -print | sort; }

# Reads changed files, prints the sources to look at.
sources_of() {
  local file
  while read -r file; do
    case $file in
      *.cc) [ ! -f "$file" ] || echo "$file" ;;
      src/*.h) all_sources | xargs -r grep -lF "#include \"${file#src/}\"" || true ;;
      *.h) all_sources | xargs -r grep -lE "#include \"([^\"]*/)?$(basename "$file")\"" || true ;;
    esac
  done | sort -u
}

case ${1---changed} in
  --changed) mapfile -t sources < <(changed_files | sources_of) ;;
  --all) mapfile -t sources < <(all_sources) ;;
  *) sources=("$@") ;;
esac

# Anew each time: sources may have been added since.
cmake --preset tidy >/dev/null
# A source that no target compiles has no command, and clang-tidy would guess one.
known=()
for source in "${sources[@]}"; do
  if grep -qF "\"file\": \"$PWD/$source\"" build/tidy/compile_commands.json; then
    known+=("$source")
  fi
done
if [ ${#known[@]} -eq 0 ]; then
  echo "clang-tidy: no source to check"
  exit 0
fi
echo "clang-tidy: ${#known[@]} sources"
printf '%s\0' "${known[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/tidy --quiet 2> >(grep -vE 'warnings? generated|^Suppressed|^Use -header' >&2)
