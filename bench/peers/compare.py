#!/usr/bin/env python3
"""Times the same work in ctx and in pi, for run.sh.

The runs of ctx and pi alternate, so that a busy minute affects both, and each figure is a median. CPU
time is user plus system time of the whole process, all threads.
"""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NODE = HERE / "node_modules/.bin/node"
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
PAGE = ROOT / "docs/benchmarks.md"
BEGIN, END = "<!-- peers:begin -->", "<!-- peers:end -->"
KEPT = {"message", "model_change", "thinking_level_change"}


def base_session():
    """Returns the session that the large ones repeat, and its description."""
    shared = Path(os.environ.get("CTX_DATA", ROOT.parent / "shared/data"))
    genuine = shared / "pi/before-compaction.jsonl"
    if genuine.exists():
        return genuine, "a genuine pi session"
    return ROOT / "examples/fix-flaky-test.jsonl", "the session in examples/"


def repeat(source, target, megabytes):
    """Writes a pi v3 session of about that size: the source repeated, linear, with new ids and without
    compactions, so that the context is the whole session. Returns the number of entries."""
    header, entries = None, []
    with open(source, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["type"] == "session":
                header = header or entry
            elif entry["type"] in KEPT:
                entries.append(entry)
    head = {"type": "session", "version": 3, "id": header["id"]}
    head |= {"timestamp": header["timestamp"], "cwd": header["cwd"]}
    parent, number = None, 0
    with open(target, "w", encoding="utf-8") as out:

        def put(value):
            out.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")

        put(head)
        while True:
            for entry in entries:
                fresh = f"{number:08x}"
                put({**entry, "id": fresh, "parentId": parent})
                parent, number = fresh, number + 1
            size = out.tell()
            copies = number // len(entries)
            if size + size / copies / 2 > megabytes * 1e6:
                return number


def answer(command):
    """Returns the JSON on the last line of a command's output."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed ({done.returncode}):\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


# A process inherits the peak memory of its parent, so the parent must be small: Python without `site`.
MEASURE = """
import posix, sys, time
quiet = [(posix.POSIX_SPAWN_OPEN, 1, "/dev/null", posix.O_WRONLY, 0)]
start = time.perf_counter()
pid = posix.posix_spawn(sys.argv[1], sys.argv[1:], posix.environ, file_actions=quiet)
_, status, used = posix.wait4(pid, 0)
wall = time.perf_counter() - start
print([status, (used.ru_utime + used.ru_stime) * 1e3, wall * 1e3, used.ru_maxrss / 1024])
"""


def whole_process(command):
    """Returns CPU ms, wall ms and peak MiB of one run of a command."""
    status, *figures = answer([sys.executable, "-I", "-S", "-c", MEASURE, *command])
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return figures


def medians(samples):
    return tuple(statistics.median(column) for column in zip(*samples))


def take_turns(ours, theirs, rounds):
    """Runs both alternately, swapping the order each round, and returns both lists of results."""
    results = ([], [])
    for number in range(rounds):
        pair = [(0, ours), (1, theirs)]
        for side, run in pair if number % 2 == 0 else reversed(pair):
            results[side].append(run())
    return results


def in_process(job, file, rounds, inner, warm):
    """Returns the median CPU ms of warm rounds inside a process, of ctx and of pi, and all results."""
    example = RELEASE / "examples/open_context"
    ours = lambda: answer([example, job, file, inner])
    theirs = lambda: answer([NODE, HERE / "pi.mjs", job, file, inner])
    both = take_turns(ours, theirs, rounds)
    results = {side[0]["result"] for side in both}
    times = [[t for run in side for t in run["cpuMs"][warm:]] for side in both]
    return [statistics.median(t) for t in times], results


def ratio(ours, theirs):
    if ours <= 0:
        return "-"
    part = theirs / ours
    return f"1/{part:.0f}" if part >= 9.5 else f"1/{part:.1f}" if part >= 1 else f"{1 / part:.2f}"


def row(name, ours, theirs, form="{:.1f}"):
    return f"| {name} | {form.format(ours)} | {form.format(theirs)} | {ratio(ours, theirs)} |"


def machine():
    cpu = next(
        (l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")),
        platform.processor() or "unknown CPU",
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.split()[1]
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    facts = f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, {system}"
    return f"{facts}; rustc {rustc}", os.getloadavg()[0]


def write_page(table):
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Benchmarks\n"
    block = f"{BEGIN}\n{table}\n{END}"
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    if pattern.search(text):
        text = pattern.sub(lambda _: block, text)
    else:
        text = f"{text.rstrip()}\n\n## ctx beside pi\n\n{block}\n"
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")


def main():
    quick = "--quick" in sys.argv[1:]
    rounds = 3 if quick else 9
    sizes = [2.4, 24] if quick else [2.4, 24, 96]
    source, kind = base_session()
    facts, load = machine()
    ctx = RELEASE / "ctx"
    lines = []
    with tempfile.TemporaryDirectory(prefix="ctx-peers-", dir=RELEASE.parent) as folder:
        files = {size: Path(folder) / f"{size}.jsonl" for size in sizes}
        for size, file in files.items():
            print(f"writing {size} MB", file=sys.stderr)
            repeat(source, file, size)
        pi = answer([NODE, HERE / "pi.mjs", "status", files[2.4]])
        floor = medians([whole_process([shutil.which("true")]) for _ in range(5)])[2]

        lines += ["| CPU ms, in process, warm | ctx | pi | ctx/pi |", "|---|--:|--:|--:|"]
        jobs = {"open": "open and rebuild the context", "count": "the same, and count every message"}
        for size, file in files.items():
            for job, words in jobs.items():
                print(f"{job} {size} MB", file=sys.stderr)
                inner, outer = (4, 3) if size > 50 else (8, rounds // 2 + 1)
                (ours, theirs), results = in_process(job, file, outer, inner, warm=2)
                if len(results) != 1:
                    print(f"warning: {job} {size} MB: results differ: {results}", file=sys.stderr)
                lines.append(row(f"{words}, {size} MB", ours, theirs, "{:.2f}"))

        lines += ["", "| a cold process, `ctx status FILE --json` | ctx | pi | ctx/pi |", "|---|--:|--:|--:|"]
        for size, file in files.items():
            print(f"cold {size} MB", file=sys.stderr)
            ours = lambda: whole_process([ctx, "status", file, "--json"])
            theirs = lambda: whole_process([NODE, HERE / "pi.mjs", "status", file])
            both = take_turns(ours, theirs, max(3, rounds // 2) if size > 50 else rounds)
            pairs = zip(("CPU ms", "wall ms", "peak MiB"), *map(medians, both))
            lines += [row(f"{what}, {size} MB", a, b) for what, a, b in pairs]

        lines += ["", "| µs for one entry, to a 2.4 MB session | ctx | pi | ctx/pi |", "|---|--:|--:|--:|"]
        entries = 500 if quick else 2000
        print("append", file=sys.stderr)

        def append(command, count=entries):
            copy = Path(folder) / "append.jsonl"
            shutil.copyfile(files[2.4], copy)
            return answer([*command, copy, count])["usPerEntry"]

        example = RELEASE / "examples/append_entries"
        both = take_turns(
            lambda: append([example, "none"]),
            lambda: append([NODE, HERE / "pi.mjs", "append"]),
            rounds,
        )
        lines.append(row("append, not synced", *map(statistics.median, both)))
        both = take_turns(
            lambda: append([example, "data"], 200), lambda: append([example, "bare"], 200), rounds
        )
        ours, bare = map(statistics.median, both)
        lines.append(
            f"| append and `fdatasync`; beside the bare calls, as pi never syncs | {ours:.1f} "
            f"| bare {bare:.1f} | {ours / bare:.2f} |"
        )

    head = [
        f"pi {pi['version']} on node {pi['node']}; {facts}; load {load:.1f} at the start.",
        f"The session is {kind}, repeated without its compactions. Medians; the two take turns.",
        f"Peaks below {floor:.0f} MiB cannot be told apart: that is the measuring process itself.",
        "",
        "Run it: `bench/peers/run.sh`",
        "",
    ]
    table = "\n".join(head + lines)
    print(table)
    if not quick:
        write_page(table)


main()
