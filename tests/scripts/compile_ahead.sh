#!/bin/sh
# Training without compiled kernels, alone and with a second process that compiles: the same losses,
# nothing left behind. Needs PoCL; elsewhere no second process is started.
set -eu
fail() { echo "FAILED: $*" >&2; exit 1; }
"$NETCL_BIN" devices | grep -q 'Portable Computing Language' || { echo "skipped: no PoCL"; exit 0; }
images=$(dirname "$(realpath "$0")")/../support/striped_images.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 "$images" toy 80 80 4

# $1: the variable's value; what is left of the lines is what training computed.
train() {
    mkdir "cache$1"
    XDG_CACHE_HOME="$work/cache$1" NETCL_COMPILE_AHEAD="$1" "$NETCL_BIN" train --data toy --device opencl:cpu \
        --model mlp --batch 20 --json > "lines$1" 2> "err$1" || fail "train: $(cat "err$1")"
    python3 -c '
import json, sys
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["event"] in ("epoch", "end"):
        print([(name, event[name]) for name in sorted(event) if "loss" in name or "accuracy" in name])
' "lines$1" > "result$1"
}

train 0
train 1
cmp result0 result1 || fail "the losses differ: $(cat result0 result1)"
[ -s result0 ] || fail "no losses were printed"
# The kernels of both runs are the same ones.
for run in 0 1; do (cd "cache$run" && find . -name '*.so' | sort) > "kernels$run"; done
[ -s kernels0 ] || fail "PoCL kept no kernels"
cmp kernels0 kernels1 || fail "the second process compiled other kernels"

# The second process itself: says nothing, writes nothing but kernels, ends by itself.
mkdir cacheworker
XDG_CACHE_HOME="$work/cacheworker" NETCL_COMPILE_AHEAD=worker "$NETCL_BIN" train --data toy --device opencl:cpu \
    --model mlp --batch 20 --save never.safetensors > out 2>&1 < /dev/null || fail "worker: $(cat out)"
[ ! -e never.safetensors ] || fail "the second process saved a model"
grep -v 'warning' out | grep -q . && fail "the second process says: $(cat out)"
(cd cacheworker && find . -name '*.so' | sort) > kernelsworker
[ -s kernelsworker ] || fail "the second process compiled nothing"
[ -z "$(comm -13 kernels0 kernelsworker)" ] || fail "the second process compiled what training does not need"

# Ended in the middle, it leaves no process behind.
mkdir cachekilled
XDG_CACHE_HOME="$work/cachekilled" "$NETCL_BIN" train --data toy --device opencl:cpu --batch 20 > /dev/null 2>&1 &
pid=$!
tries=0
# The second process; linkers that a driver starts have other names.
second() {
    for one in /proc/[0-9]*; do
        grep -qx netcl "$one/comm" 2>/dev/null && grep -qx "PPid:[[:space:]]*$pid" "$one/status" 2>/dev/null && echo "${one#/proc/}"
    done
    true
}
until [ -n "$(second)" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "no second process was started"
    kill -0 "$pid" 2>/dev/null || fail "training ended before a second process was seen"
    sleep 0.05
done
child=$(second | head -n 1)
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
tries=0
while [ -n "$child" ] && kill -0 "$child" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "the second process goes on without the first"
    sleep 0.05
done
echo "2 processes: passed"
