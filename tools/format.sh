#!/bin/sh
# Formats the C++ files of the tree with clang-format-19, or says which are not formatted.
#
# Usage: tools/format.sh [--check]
set -eu
cd "$(dirname "$0")/.."

list_files() {
  # third_party/ is not ours to format.
  find src tests fuzz bench -name node_modules -prune -o -type f \( -name '*.h' -o -name '*.cc' \) -print | sort
}
case ${1-} in
  --check) list_files | xargs clang-format-19 --dry-run -Werror ;;
  '') list_files | xargs clang-format-19 -i ;;
  *) echo "usage: tools/format.sh [--check]" >&2; exit 2 ;;
esac
