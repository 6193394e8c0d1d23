#!/usr/bin/env bash
# clang-format over every C++ and OpenCL source: rewrites in place, or with --check only reports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The version is part of the style: others break lines differently.
tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
  echo "format: clang-format 14 is needed (make setup installs it)" >&2
  exit 1
fi

# Tracked and new files alike; a source archive without git metadata is searched instead.
list_sources() {
  git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h' '*.cl' 2>/dev/null ||
    find . \( -name build -o -name .venv -o -name .git \) -prune -o \
      \( -name '*.cpp' -o -name '*.h' -o -name '*.cl' \) -print0
}

files=()
while IFS= read -r -d '' file; do
  # Listed by git but deleted in the working tree.
  if [ -f "$file" ]; then files+=("$file"); fi
done < <(list_sources)
if [ ${#files[@]} = 0 ]; then
  echo "format: no sources"
  exit 0
fi

if [ "${1:-}" = --check ]; then
  differ=$(printf '%s\0' "${files[@]}" | xargs -0 -n 20 -P 2 "$tool" --dry-run -Werror 2>&1 |
    sed -nE 's/^([^ ]+):[0-9]+:[0-9]+: error.*/\1/p' | sort | uniq -c) || true
  if [ -n "$differ" ]; then
    printf 'format: places that differ from .clang-format, per file:\n%s\n' "$differ" >&2
    echo "format: 'make format' rewrites them" >&2
    exit 1
  fi
  echo "format: ${#files[@]} files agree with .clang-format"
else
  printf '%s\0' "${files[@]}" | xargs -0 "$tool" -i
  echo "format: ${#files[@]} files formatted"
fi
