"""What a student costs beside its ensemble: multiply-adds, and the time for one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from priornet_paper.page.compare import Goal, tally
from priornet_paper.page.markdown import marked, shown, table
from priornet_paper.page.notes import Miss
from priornet_paper.page.results import Results
from priornet_paper.page.section import Section, in_part

__all__ = ["add_costs"]

_MOST_WORK, _MOST_LATENCY = 0.5, 1.5


def add_costs(results: Results, datasets: Iterable[str], section: Section) -> None:
    """Multiply-adds and latency at batch size 1, for the sets whose results have them."""
    rows: list[list[str]] = []
    light: list[bool] = []
    for dataset in datasets:
        run = results.get("beyond", dataset)
        methods: Mapping[str, Any] = {} if run is None else run.content["methods"]
        cost = {name: methods.get(name, {}).get("cost") for name in ("EnD2", "ENSM")}
        if not all(cost.values()):
            continue
        student, teacher = cost["EnD2"], cost["ENSM"]
        work = student["multiply_adds"] / teacher["multiply_adds"]
        wait = student["latency_ms"] / teacher["latency_ms"]
        cells = [
            *(f"{cost[name]['multiply_adds']:,}" for name in ("EnD2", "ENSM")),
            marked(shown(work), work >= _MOST_WORK),
            *(shown(cost[name]["latency_ms"], 3) for name in ("EnD2", "ENSM")),
            marked(shown(wait), wait >= _MOST_LATENCY),
        ]
        if run is None or not run.is_complete:
            rows.append([dataset, *in_part(cells)])
            continue
        rows.append([dataset, *cells])
        is_light = work < _MOST_WORK and wait < _MOST_LATENCY
        light.append(is_light)
        if not is_light:
            text = f"{dataset}, EnD2, multiply-adds {shown(work)} of the ensemble's, "
            text += f"latency {shown(wait)} of a member's"
            section.misses.append(Miss(f"beyond/{dataset}/EnD2/cost", text))
    header = ["data", "multiply-adds, EnD2", "ENSM", f"ratio<br>goal below {_MOST_WORK}"]
    header += ["ms for one row, EnD2", "one member", f"ratio<br>goal below {_MOST_LATENCY}"]
    section.lines += table(header, rows) if rows else []
    section.goals.append(
        Goal.counted(
            f"Our recipe, cost of EnD2: multiply-adds below {_MOST_WORK} of the ensemble's, "
            f"latency below {_MOST_LATENCY} of one member's",
            tally(light),
            len(light),
        )
    )
