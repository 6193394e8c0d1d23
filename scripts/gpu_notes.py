"""What the kernels' comments say to scripts/gpu_audit.py, and whether barriers are reached by all
items of a group.

A comment names the kernels that it is about, and may go on in the lines below it:

    // coalescing(matmul_naive): neighbouring items read ...     required of every kernel for GPUs
    // occupancy(matmul_register_tiled): the reason for less than half
    // device(matmul_packed): CPU                                 not audited"""

import re
import subprocess

NOTE = re.compile(r"^\s*//\s*(coalescing|occupancy|device)\(([\w, ]+)\):\s*(.*)$")
MORE = re.compile(r"^\s*//\s?(.*)$")


def notes_of(text):
    """{kind: {kernel: sentence}} of one source."""
    notes = {"coalescing": {}, "occupancy": {}, "device": {}}
    open_note = None
    for line in text.splitlines():
        start, more = NOTE.match(line), MORE.match(line)
        if start:
            kind, names, sentence = start.groups()
            open_note = kind, [n.strip() for n in names.split(",")]
            for name in open_note[1]:
                notes[kind][name] = sentence.strip()
        elif more and open_note:
            for name in open_note[1]:
                notes[open_note[0]][name] += " " + more.group(1).strip()
        else:
            open_note = None
    return notes


def read_notes(folder):
    notes = {"coalescing": {}, "occupancy": {}, "device": {}}
    for path in sorted([*folder.rglob("*.cl"), *folder.rglob("*.cpp")]):
        for kind, of in notes_of(path.read_text(encoding="utf-8")).items():
            notes[kind].update(of)
    return for_gpus_too(notes)


def for_gpus_too(notes):
    """A kernel of the same name in another file, which says how it reads memory, is one for GPUs."""
    for name in notes["coalescing"]:
        notes["device"].pop(name, None)
    return notes


# ---- barriers

def preprocessed(path):
    """The source as the compiler sees it: macros hide loops and barriers."""
    options = path.with_suffix(".options").read_text(encoding="utf-8").split()
    return subprocess.run(["c++", "-E", "-P", "-x", "c", "-undef", "-w", "-D__OPENCL_VERSION__=120",
                           "-Dcl_khr_fp64=1", "-Dcl_khr_fp16=1", *(o for o in options if o.startswith("-D")),
                           str(path)], capture_output=True, text=True, check=True).stdout


def close_of(text, at):
    """Behind the bracket that closes the one at `at`."""
    pairs = {"(": ")", "{": "}"}
    depth = 0
    for k in range(at, len(text)):
        if text[k] == text[at]:
            depth += 1
        elif text[k] == pairs[text[at]]:
            depth -= 1
            if depth == 0:
                return k + 1
    return len(text)


def functions(text):
    """(name, body) of every function."""
    for m in re.finditer(r"(\w+)\s*\([^;{}]*\)\s*\{", text):
        yield m.group(1), text[m.end() - 1:close_of(text, m.end() - 1)]


VARYING = re.compile(r"get_local_id|get_global_id|get_sub_group|atomic_|atom_")
WORD = re.compile(r"[A-Za-z_]\w*")


def varying_names(body):
    """Variables that may differ between the items of a group: made of ids, to a fixed point. What is
    read from memory counts as equal where its index is."""
    assigned = re.findall(r"\b([A-Za-z_]\w*)(?:\s*\[[^\]]*\]|\s*\.\w+)*\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)\s*([^;{}]*)", body)
    names = set()
    while True:
        more = {n for n, value in assigned
                if VARYING.search(value) or names & set(WORD.findall(value))} - names
        if not more:
            return names
        names |= more


def is_varying(condition, names):
    return bool(VARYING.search(condition) or names & set(WORD.findall(condition)))


def statement_end(text, at):
    """Behind the statement that begins at `at`: a block, or up to its semicolon."""
    while at < len(text) and text[at].isspace():
        at += 1
    control = re.match(r"(?:if|for|while)\s*\(|else\b|do\b", text[at:])
    if at < len(text) and text[at] == "{":
        return close_of(text, at)
    if control:
        at += control.end()
        return statement_end(text, close_of(text, at - 1) if control.group().endswith("(") else at)
    return text.find(";", at) + 1 or len(text)




def divergent_barriers(text):
    """Sentences about barriers that some items of a group may not reach: inside a condition or loop
    that depends on an item's id, or behind a return that does."""
    bodies = dict(functions(text))
    waits = {n for n, b in bodies.items() if "barrier(" in b}
    while True:  # functions that call those that wait
        more = {n for n, b in bodies.items() if n not in waits and waits & set(WORD.findall(b))}
        if not more:
            break
        waits |= more
    calls = re.compile(r"\b(?:barrier|work_group_barrier" + "".join("|" + n for n in sorted(waits)) + r")\s*\(")
    found = []
    for name in sorted(waits):
        body = bodies[name]
        names = varying_names(body)
        for m in re.finditer(r"\b(if|for|while)\s*\(", body):
            end = close_of(body, m.end() - 1)
            if not is_varying(body[m.end():end - 1], names):
                continue
            last = statement_end(body, end)
            inside = body[end:last]
            otherwise = re.match(r"\s*else\b", body[last:])
            if otherwise:
                inside += body[last:statement_end(body, last + otherwise.end())]
            if calls.search(inside):
                found.append(f"{name}: a barrier inside {m.group(1)} ({body[m.end():end - 1].strip()})")
            elif re.search(r"\breturn\b", inside) and calls.search(body[end:]):
                found.append(f"{name}: a barrier behind a return if ({body[m.end():end - 1].strip()})")
    return found
