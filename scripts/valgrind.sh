#!/usr/bin/env bash
# Leaks and errors of memory in netcl's own code: training, files and ops on the CPU backend in valgrind. What
# libraries keep until the process ends is in cmake/valgrind.supp, with reasons.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v valgrind >/dev/null || { echo "valgrind.sh: valgrind is not installed (Debian: apt-get install valgrind)" >&2; exit 1; }

bin=build/release/bin
out=build/valgrind
rm -rf "$out"
mkdir -p "$out/vendors"
# No driver: what is tried is netcl. One thread: OpenMP's pool is not ours.
export OCL_ICD_VENDORS="$PWD/$out/vendors" OMP_NUM_THREADS=1 XDG_CACHE_HOME="$PWD/$out/cache" NETCL_DEVICE=cpu

errors=0
check() {
  local name=$1; shift
  valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible \
    --suppressions=cmake/valgrind.supp --error-exitcode=9 --log-file="$out/$name.log" "$@" > "$out/$name.txt" 2>&1 || {
      echo "FAILED $name: exit code $?"; tail -n 40 "$out/$name.log"; errors=$((errors + 1)); return; }
  echo "ok     $name"
}
check session "$bin/soak" --compare "$out/losses" cpu
check files "$bin/fuzz_replay" tests/fuzz/corpus 60
check ops "$bin/netcl" selftest --device cpu --quick --filter 'add/host/f32,softmax/host/f32,sum/host/f32,layer_norm/host/f32,conv2d/host/f32/1x*'
check env "$bin/netcl" env
[ "$errors" = 0 ] && echo "valgrind: no errors, no leaks of netcl"
exit "$errors"
