"""Run attacks whole: ``python -m attack``, from the folder of the tests.

Prints one line an attack and exits with 1 where a promise is broken. A second run of some attacks
keeps the results of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from attack.trial import Attack, broken
from priornet.evaluation.results import provenance, write_results

RESULTS = Path(__file__).parents[2] / "results" / "attack.json"


def attacks() -> dict[str, Attack]:
    """Collect the attacks of every module beside this one."""
    found: dict[str, Attack] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem.startswith(("_", "test_")) or path.stem == "trial":
            continue
        for attack in import_module(f"attack.{path.stem}").ATTACKS:
            found[attack.name] = attack
    return found


def run(attack: Attack, seed: int, tries: int) -> dict[str, Any]:
    """Run one attack in a folder of its own; return its signed record."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        counts = attack.run(seed, tries, Path(folder))
    return {
        "promise": attack.promise,
        "seed": seed,
        "counts": counts,
        "must_be_zero": list(attack.zero),
        "held": not broken(attack, counts),
        "seconds": round(time.perf_counter() - start, 1),
        **provenance(),
    }


def main(arguments: list[str]) -> int:
    """Run the attacks that the arguments name, or all."""
    known = attacks()
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tries", type=int, help="tries of each attack; by default its own number")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"unknown attack {unknown[0]!r}; choose one of: {', '.join(known)}")
    records = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    all_held = True
    for name in given.names or known:
        attack = known[name]
        record = run(attack, given.seed, given.tries or attack.tries)
        records[name] = record
        write_results(given.out, {key: records[key] for key in sorted(records)})
        all_held &= record["held"]
        verdict = "held  " if record["held"] else "BROKEN"
        print(f"{verdict} {name}: {record['counts']} ({record['seconds']} s)", flush=True)
    return 0 if all_held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
