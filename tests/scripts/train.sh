#!/bin/sh
# Training from the command line on a small dataset: what is printed, files, Ctrl+C, bad input.
set -eu
fail() { echo "FAILED: $*" >&2; exit 1; }
images=$(dirname "$(realpath "$0")")/../support/striped_images.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export NETCL_CACHE_DIR="$work/cache"

python3 "$images" toy 400 80 4

# A run, its file, its page.
"$NETCL_BIN" train --data toy --device cpu --epochs 2 --batch 20 --seed 3 --save a.safetensors \
    --report a.html > out 2> err || fail "train: $(cat out err)"
grep -q 'Conv2d' out || fail "the summary names the layers"
grep -q 'parameters' out || fail "the summary counts the parameters"
grep -q 'epoch 2: loss' out || fail "epochs are reported"
grep -q 'test accuracy' out || fail "the test accuracy is shown"
grep -q 'rows: the true class' out || fail "the confusion matrix is shown"
grep -q 'saved: a.safetensors' out || fail "where it was saved"
grep -q 'data:image/png;base64' a.html || fail "the report has pictures"
! grep -q 'http' a.html || fail "the report needs other files"

# The same seed gives the same file.
"$NETCL_BIN" train --data toy --device cpu --epochs 2 --batch 20 --seed 3 --save b.safetensors \
    --json > lines || fail "train --json"
python3 - <<'CHECK' || fail "the lines, or the files' tensors"
import json, struct
events = [json.loads(line) for line in open("lines")]
kinds = [event["event"] for event in events]
assert kinds[0] == "start" and kinds[-1] == "saved" and kinds.count("epoch") == 2, kinds
assert "progress" in kinds and events[0]["parameters"] > 1000, events[0]
end = events[kinds.index("end")]
assert end["test_accuracy"] > 0.9 and sum(map(sum, end["confusion"])) == 80, end
def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    return data[8 + size:]
assert tensors("a.safetensors") == tensors("b.safetensors")
CHECK

"$NETCL_BIN" eval a.safetensors --device cpu | grep -q 'test accuracy' || fail "eval"
"$NETCL_BIN" eval a.safetensors --data toy --device cpu --json | python3 -c '
import json, sys
assert json.load(sys.stdin)["samples"] == 80' || fail "eval --json"

# Images as files.
python3 - <<'IMAGES'
import struct, zlib
def png(path, side, stripe):
    rows = b"".join(b"\0" + bytes(180 if x // 3 == stripe else 30 for x in range(side))
                    for _ in range(side))
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(
        ">I", zlib.crc32(kind + body))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", side, side, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
png("two.png", 12, 2)
png("large.png", 24, 2)
IMAGES
"$NETCL_BIN" predict a.safetensors two.png --device cpu | grep -q '^two.png: 2 ' || fail "predict"
code=0; "$NETCL_BIN" predict a.safetensors large.png --device cpu > out 2> err || code=$?
[ "$code" = 1 ] && grep -q '12 x 12' err || fail "predict of a wrong size: $code $(cat err)"
"$NETCL_BIN" predict a.safetensors large.png --resize --device cpu > /dev/null || fail "--resize"

# Ctrl+C: a file, the command that goes on, 130. Many epochs, so that it comes in the middle.
python3 - "$NETCL_BIN" <<'CHECK' || fail "Ctrl+C"
import json, os, shlex, signal, subprocess, sys
netcl = sys.argv[1]
def interrupted(*more):
    run = subprocess.Popen([netcl, "train", "--data", "toy", "--device", "cpu", "--epochs", "100000",
                            "--batch", "20", "--json", *more], stdout=subprocess.PIPE, text=True)
    for line in run.stdout:
        if json.loads(line)["event"] == "epoch":
            break
    run.send_signal(signal.SIGINT)
    lines = [json.loads(line) for line in run.stdout]
    assert run.wait() == 130, run.returncode
    assert lines[-1]["event"] == "interrupted", lines[-1]
    return lines[-1]
last = interrupted("--save", "stopped here.safetensors")
assert last["saved"] == "stopped here.safetensors"
command = shlex.split(last["command"])
assert command[:2] == ["netcl", "train"], command
def state(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8:8 + size])["__metadata__"]["netcl.checkpoint"])
before = state(last["saved"])
assert before["loader"]["epoch"] >= 1, before["loader"]
command[command.index("--epochs") + 1] = str(before["loader"]["epoch"] + 2)
subprocess.run([netcl, *command[1:]], check=True, stdout=subprocess.DEVNULL)
assert state(last["saved"])["optimizer"]["steps"] == 20 * (before["loader"]["epoch"] + 2)
assert interrupted()["saved"] == "netcl-interrupted.safetensors"
assert os.path.exists("netcl-interrupted.safetensors")
CHECK

# Bad input: 1 and a message; bad calls: 2.
problem() {
    expected=$1; shift
    code=0; "$NETCL_BIN" "$@" > out 2> err || code=$?
    [ "$code" = "$expected" ] || fail "'netcl $*' exits with $code: $(cat err)"
    [ -s err ] || fail "'netcl $*' says nothing"
}
mkdir empty
python3 "$images" many 40 20 4 && python3 "$images" other 40 20 9
cp other/t10k-* many/
problem 1 train --data nowhere --device cpu
problem 1 train --data empty --device cpu
problem 1 train --data many --device cpu
grep -q 'labels must be in' err || fail "labels out of range: $(cat err)"
problem 1 train --data toy --device cpu --model vgg
problem 1 train --data toy --device nonsense
problem 1 train --data toy --device cpu --save nowhere/x.safetensors
problem 1 train --device cpu
problem 1 train --resume a.safetensors --device cpu --model mlp
grep -q 'another model' err || fail "another model: $(cat err)"
problem 1 train --resume two.png --device cpu
problem 1 eval two.png --device cpu
problem 1 predict nowhere.safetensors two.png --device cpu
problem 2 train --data toy --epochs 0
problem 2 train --data toy --lr nonsense
problem 2 train --data toy --image-size 0
problem 2 eval
problem 2 predict a.safetensors
# A full disk.
code=0; (trap '' XFSZ; ulimit -f 8; "$NETCL_BIN" train --data toy --device cpu --epochs 1 --batch 100 \
    --save full.safetensors > out 2> err) || code=$?
[ "$code" = 1 ] && [ ! -e full.safetensors ] && [ -s err ] || fail "a full disk: $code $(cat err)"
echo "1 passed, 0 failed"
