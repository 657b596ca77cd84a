"""Time and memory of a process before any work: commands that only answer, and imports.

Each case runs in a fresh interpreter, taking turns, after one round that fills the caches of the
disk. Processor seconds of the process, so that other work on the machine matters little; "beside"
is the same process without priornet, which the last column takes off.

    python benchmarks/startup.py [--repeats 7] [--json out.json]
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
from pathlib import Path

CLI = "from priornet.cli import app; app({arguments}, standalone_mode=False)"
EMPTY = """
import typer
app = typer.Typer()
app.command("nothing")(lambda: None)

@app.callback()
def main(version: bool = False):
    pass

app(["nothing", "--help"], standalone_mode=False)
"""
NAMES = (
    "import torch, priornet; [getattr(priornet, name) for name in priornet.__all__ if name not in "
    "{'estimators', 'export', 'load', *(n for n in priornet.__all__ if 'Regressor' in n)}]"
)
CASES = {  # name: (code, the same without priornet)
    "--help": (CLI.format(arguments=["--help"]), EMPTY),
    "--version": (CLI.format(arguments=["--version"]), EMPTY),
    "fit --help": (CLI.format(arguments=["fit", "--help"]), EMPTY),
    "import priornet": ("import priornet", "pass"),
    "every name but estimators and export": (NAMES, "import torch"),
    "estimators": ("import torch, sklearn; import priornet.estimators", "import torch, sklearn"),
}


def processor_seconds(code: str) -> float:
    """Measure a process of its own that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(repeats: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of each case and of what stands beside it."""
    found = {name: {"seconds": [], "beside": []} for name in CASES}
    for turn in range(repeats + 1):
        for name, (code, beside) in CASES.items():
            taken = {"seconds": processor_seconds(code), "beside": processor_seconds(beside)}
            if turn > 0:  # the first one warms the disk
                for what, seconds in taken.items():
                    found[name][what].append(round(seconds, 4))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=7, help="of each case")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    found = measure(args.repeats)
    python = platform.python_version()
    print(f"processor seconds of a process, {args.repeats} repeats; Python {python}")
    print(f"{'what':<38} {'median':>8} {'most':>8} {'beside':>8} {'priornet':>9}")
    for name, own in found.items():
        median, beside = (statistics.median(own[what]) for what in ("seconds", "beside"))
        most = max(own["seconds"])
        print(f"{name:<38} {median:>8.3f} {most:>8.3f} {beside:>8.3f} {median - beside:>9.3f}")
    if args.json:
        from priornet.evaluation.results import provenance, write_results

        record = {"repeats": args.repeats, "load_before": load, "processor_seconds": found}
        write_results(args.json, record | provenance())


if __name__ == "__main__":
    main()
