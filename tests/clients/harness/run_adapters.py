"""python -m harness.run_adapters [--ci] [--installed DIR] [NAME ...]"""

import argparse
import subprocess
import sys
from pathlib import Path

from .adapters import ALL, Adapter, check, run
from .judge import HEAD, table

CI = ["langchain", "openai-agents", "vercel-ai"]
COLUMNS = [*HEAD[:5], "object", "stream", "parallel", "cancel"]


def install(adapter):
    """Installs the packages of an adapter, unless they are there."""
    if adapter.missing():
        adapter.folder.mkdir(parents=True, exist_ok=True)
        for command in adapter.install():
            run(command)
        (adapter.folder / "installed").write_text("\n".join(adapter.needs))
    if adapter.packages:
        adapter.unpack()


def main(arguments):
    parser = argparse.ArgumentParser("tests/adapters/run.sh")
    parser.add_argument("--ci", action="store_true", help="three of them")
    installed = "the examples, with the wheel and the npm packages in this folder"
    parser.add_argument("--installed", type=Path, metavar="DIR", help=installed)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(ALL)}; default: all")
    given = parser.parse_args(arguments)
    packed = [name for name in ALL if not (given.installed and Adapter(name).is_rust())]
    names = given.names or (CI if given.ci else packed)
    if unknown := [name for name in names if name not in ALL]:
        parser.error(f"no such adapter: {unknown}; there are {list(ALL)}")
    rows, failed = [], []
    for name in names:
        print(f"{name}: runs", flush=True)
        adapter = Adapter(name, given.installed)
        try:
            install(adapter)
            faults, row = check(adapter)
        except (OSError, RuntimeError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            faults, row = [f"{type(error).__name__}: {error}"], [name, *["-"] * (len(COLUMNS) - 1)]
        rows.append(row)
        for fault in faults:
            print(f"{name}: FAILED: {fault}", flush=True)
        failed += [name] if faults else []
    print(f"\nwithout ctx / with ctx\n{table(rows, COLUMNS)}")
    print(f"\n{len(rows) - len(failed)} of {len(rows)} adapters passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
