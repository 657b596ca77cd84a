"""Plant mutants: ``python -m mutants``, from the folder of the tests.

Prints one line a mutant and exits with 1 where more than two were not found, or a patch is broken.
Only a run of the whole catalogue writes results.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from mutants.planting import Outcome, Project, read_catalogue, tried
from priornet.evaluation.results import provenance, write_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "mutants.json"

_ALLOWED = 2  # mutants that may go unfound


def main(arguments: list[str]) -> int:
    """Plant the mutants that the arguments name, or all."""
    known = read_catalogue()
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="as in catalogue.toml; else all")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"unknown mutant {unknown[0]!r}; choose one of: {', '.join(known)}")
    project = Project(ROOT / "src", ROOT / "tests")
    outcomes: dict[str, Outcome] = {}
    for name in given.names or known:
        outcome = outcomes[name] = tried(known[name], project)
        print(f"{outcome.verdict:12} {name} ({outcome.seconds:.0f} s) {outcome.by}", flush=True)
    counts = Counter(outcome.verdict for outcome in outcomes.values())
    print(f"{counts['found']} of {len(outcomes)} found")
    if not given.names:
        write_results(given.out, _results(outcomes, counts))
    return int(counts["broken patch"] > 0 or counts["not found"] > _ALLOWED)


def _results(outcomes: dict[str, Outcome], counts: Counter[str]) -> dict[str, object]:
    """Ready for JSON, signed."""
    return {
        "planted": len(outcomes),
        "counts": dict(sorted(counts.items())),
        "mutants": {name: asdict(outcome) for name, outcome in outcomes.items()},
        "seconds": round(sum(outcome.seconds for outcome in outcomes.values()), 1),
        **provenance(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
