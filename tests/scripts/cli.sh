#!/bin/sh
# The command-line tool as a user meets it: output, exit codes, bad calls.
set -eu
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NETCL_CACHE_DIR="$work/cache"

"$NETCL_BIN" --version | grep -q '^netcl [0-9]' || fail "--version"
"$NETCL_BIN" --help | grep -q doctor || fail "--help lists the commands"
"$NETCL_BIN" devices | grep -q 'CPU backend' || fail "devices names the CPU backend"
"$NETCL_BIN" devices --json > "$work/devices.json"
python3 - "$work/devices.json" <<'CHECK' || fail "devices --json"
import json, sys
out = json.load(open(sys.argv[1]))
assert out["devices"][-1]["selector"] == "cpu", out
assert out["selectors"]["cpu"], out
assert out["selectors"]["auto"], out
for device in out["devices"]:
    assert device["name"] and device["device_type"] in ("gpu", "cpu", "accel", "other"), device
CHECK

# doctor: 0 where a device computes, 1 and a remedy where there is no driver.
code=0; "$NETCL_BIN" doctor > "$work/doctor" || code=$?
grep -q 'computes right results' "$work/doctor" || fail "doctor: $(cat "$work/doctor")"
[ "$code" = 0 ] || grep -q 'fix: ' "$work/doctor" || fail "doctor failed without a remedy"
if [ "${NETCL_BUILT_WITH_OPENCL:-1}" = 1 ]; then
    code=0; OCL_ICD_VENDORS="$NETCL_EMPTY_VENDORS" "$NETCL_BIN" doctor > "$work/doctor" || code=$?
    [ "$code" = 1 ] || fail "doctor without a driver exits with $code"
    grep -q 'fix: apt-get install pocl-opencl-icd' "$work/doctor" || fail "doctor names no remedy"
    # A driver file that names a library which is not there.
    mkdir "$work/vendors"
    echo libnosuchdriver.so > "$work/vendors/broken.icd"
    code=0; OCL_ICD_VENDORS="$work/vendors" "$NETCL_BIN" doctor > "$work/doctor" || code=$?
    [ "$code" = 1 ] || fail "doctor with a broken driver exits with $code"
    grep -q 'libnosuchdriver.so' "$work/doctor" || fail "doctor does not name the missing library"
    OCL_ICD_VENDORS="$NETCL_EMPTY_VENDORS" "$NETCL_BIN" devices | grep -q 'no OpenCL device' ||
        fail "devices without a driver"
fi

"$NETCL_BIN" env | grep -q NETCL_DEVICE || fail "env"
NETCL_DEVICE=cpu "$NETCL_BIN" devices | grep -q 'auto .*CPU backend' || fail "NETCL_DEVICE"
"$NETCL_BIN" cache list | grep -q programs || fail "cache list"
"$NETCL_BIN" cache verify | grep -q ' 0 were damaged' || fail "cache verify"
"$NETCL_BIN" cache clear | grep -q removed || fail "cache clear"
"$NETCL_BIN" cache list | grep -q '^0 programs' || fail "cache list after clear"

for bad in "" "nonsense" "devices --nonsense" "cache" "cache nonsense"; do
    code=0; "$NETCL_BIN" $bad > /dev/null 2> "$work/err" || code=$?
    [ "$code" = 2 ] || fail "'netcl $bad' exits with $code"
    [ -s "$work/err" ] || fail "'netcl $bad' says nothing"
done
echo "1 passed, 0 failed"
