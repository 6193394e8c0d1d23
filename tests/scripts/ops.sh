#!/bin/sh
# `netcl ops` and `netcl selftest` as a user meets them: output, exit codes, bad calls, Ctrl+C.
set -eu
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NETCL_CACHE_DIR="$work/cache"

# ---- ops
"$NETCL_BIN" ops > "$work/ops"
grep -q '^op .*dtypes.*gradient.*kernels.*computes' "$work/ops" || fail "ops has no header"
grep -q '^relu  *f32 .*yes .*vectorized scalar .*NaN stays NaN' "$work/ops" || fail "ops: relu"
grep -q '^[0-9]* ops; ' "$work/ops" || fail "ops does not count"
"$NETCL_BIN" ops relu > "$work/relu"
for word in 'relu: ' float16 int64 elementwise.vectorized tolerance samples; do
    grep -q "$word" "$work/relu" || fail "ops relu does not say '$word'"
done
"$NETCL_BIN" ops --markdown > "$work/markdown"
grep -q '^| relu | ' "$work/markdown" || fail "ops --markdown"
"$(dirname "$0")/../../scripts/update_ops_table.py" --check "$NETCL_BIN" || fail "docs/ops.md"
code=0; "$NETCL_BIN" ops rel 2> "$work/err" || code=$?
[ "$code" = 2 ] || fail "ops with an unknown name exits with $code"
grep -q "no op called 'rel'.*relu" "$work/err" || fail "ops: $(cat "$work/err")"

# ---- selftest
"$NETCL_BIN" selftest --device cpu --filter lt > "$work/out" 2> "$work/err" || fail "selftest: $(cat "$work/out")"
tail -1 "$work/out" | grep -q '^[1-9][0-9]* passed, 0 failed$' || fail "selftest ends with: $(tail -1 "$work/out")"
grep -q '^lt  *[1-9]' "$work/out" || fail "selftest has no line for lt"
[ ! -s "$work/err" ] || fail "a quick selftest writes to standard error: $(cat "$work/err")"

# An id of --list is a filter for exactly that case.
"$NETCL_BIN" selftest --device cpu --filter lt --list > "$work/ids"
[ "$(wc -l < "$work/ids")" -gt 10 ] || fail "--list is short"
id=$(tail -1 "$work/ids")
"$NETCL_BIN" selftest --device cpu --filter "$id" | tail -1 | grep -qx '1 passed, 0 failed' || fail "one case: $id"
"$NETCL_BIN" selftest --device cpu --filter lt --list --stride 4 > "$work/some"
[ -s "$work/some" ] && [ "$(wc -l < "$work/some")" -lt "$(wc -l < "$work/ids")" ] || fail "--stride 4 lists $(wc -l < "$work/some") cases"
! grep -vxFqf "$work/ids" "$work/some" || fail "--stride 4 lists cases that are not there without it"
"$NETCL_BIN" selftest --device cpu --filter relu --list | grep -q /gradient/ || fail "no gradients listed"
if "$NETCL_BIN" selftest --device cpu --filter relu --list --no-gradients | grep -q /gradient/; then
    fail "--no-gradients lists gradients"
fi
"$NETCL_BIN" selftest --device cpu --filter 'lt/*/f32/*,isnan' --json > "$work/report.json"
python3 - "$work/report.json" <<'CHECK' || fail "selftest --json"
import json, sys
out = json.load(open(sys.argv[1]))
assert out["passed"] > 10 and out["failed"] == 0 and out["failures"] == [], out
assert not out["interrupted"] and out["device"], out
assert [op["op"] for op in out["ops"]] == ["isnan", "lt"], out
assert sum(op["cases"] for op in out["ops"]) == out["passed"], out
CHECK
# The device that "auto" means, whatever it is.
"$NETCL_BIN" selftest --filter 'isnan/*/f32/*' | tail -1 | grep -q ' 0 failed$' || fail "selftest on auto"

# ---- bad calls
code=0; "$NETCL_BIN" selftest --device cpu --filter nosuchop > "$work/out" 2> "$work/err" || code=$?
[ "$code" = 2 ] || fail "a filter without cases exits with $code"
grep -q "'nosuchop' matches none" "$work/err" || fail "bad filter: $(cat "$work/err")"
grep -q 'op/kernel/dtype/sample' "$work/err" || fail "the error does not say how ids look"
code=0; "$NETCL_BIN" selftest --device nosuchdevice --filter lt > "$work/out" 2> "$work/err" || code=$?
[ "$code" = 1 ] || fail "a bad device exits with $code"
grep -q nosuchdevice "$work/err" || fail "bad device: $(cat "$work/err")"
for bad in "ops add relu" "ops add --markdown" "selftest add" "selftest --filter" "selftest --stride 0" "selftest --nonsense"; do
    code=0; "$NETCL_BIN" $bad > /dev/null 2> "$work/err" || code=$?
    [ "$code" = 2 ] || fail "'netcl $bad' exits with $code"
done

# ---- Ctrl+C: the summary so far, 130. Background jobs of a shell ignore SIGINT, hence Python.
python3 - "$NETCL_BIN" <<'CHECK' || fail "Ctrl+C"
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
child = subprocess.Popen([sys.argv[1], "selftest"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
child.stdout.readline()  # the run has begun
time.sleep(0.3)
child.send_signal(signal.SIGINT)
out, _ = child.communicate(timeout=20)
assert child.returncode == 130, (child.returncode, out)
assert "interrupted" in out and " passed, " in out.splitlines()[-1], out
CHECK
echo "1 passed, 0 failed"
