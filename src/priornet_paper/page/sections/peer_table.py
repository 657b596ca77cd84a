"""Published methods on the splits that everybody uses, beside ours."""

from __future__ import annotations

from priornet_paper.page.compare import (
    FAILS,
    HOLDS,
    NOT_RUN,
    ROUNDING,
    UNFINISHED,
    Goal,
    state_of,
    tally,
)
from priornet_paper.page.markdown import INCOMPLETE, marked, shown, signed, table, with_error
from priornet_paper.page.notes import Miss
from priornet_paper.page.numbers import Key, Number, peers
from priornet_paper.page.results import Results
from priornet_paper.page.section import Section, found_in

__all__ = ["peer_table"]

_OURS = ("EnD2", "ENSM")
_ALL, _SOME = "Deep Ensembles", "Deep Evidential"
_BELOW, _NEAR = 4, 0.03  # at or below on four sets, within 0.03 on the others


def peer_table(results: Results) -> Section:
    """NLL and RMSE, our recipe first, then what others have published."""
    published = peers()
    datasets = list(published[_ALL]["uci"])
    section = Section(
        [
            "Twenty published splits (five for protein), 90 % of the rows for training. Ours: the "
            "recipe above. Bold: the lowest mean of a row. ✗: EnD2's NLL is above that of Deep "
            f"Ensembles, or more than {_NEAR} above that of Deep Evidential Regression.",
        ]
    )
    for metric in ("nll", "rmse"):
        header = ["data", *(f"{name} (ours)" for name in _OURS), *published]
        rows = [_row(results, dataset, metric) for dataset in datasets]
        section.lines += ["", f"**{metric.upper()}**", *table(header, rows)]
    sources = "; ".join(f"{name}: {entry['source']}" for name, entry in published.items())
    section.lines += [f"Sources: {sources}."]
    _add_goals(results, datasets, section)
    return section


def _ours(results: Results, dataset: str, metric: str, method: str) -> Number | None:
    run = results.get("splits", dataset)
    return found_in(run, Key(dataset, metric, method)) if run and run.is_complete else None


def _row(results: Results, dataset: str, metric: str) -> list[str]:
    run = results.get("splits", dataset)
    absent = NOT_RUN if run is None or run.is_complete else INCOMPLETE
    ours = [_ours(results, dataset, metric, method) for method in _OURS]
    others = [Number(entry["uci"][dataset][metric]) for entry in peers().values()]
    lowest = min(value.mean for value in (*ours, *others) if value is not None)
    cells: list[str] = []
    for method, value in zip((*_OURS, *peers()), (*ours, *others), strict=True):
        if value is None:
            cells.append(absent)
            continue
        text = with_error(value, 3 if metric == "nll" and method in _OURS else 2)
        if method == "EnD2" and metric == "nll" and _is_miss(value.mean, dataset):
            cells.append(marked(text, True))
        else:
            cells.append(f"**{text}**" if value.mean <= lowest + ROUNDING else text)
    return [dataset, *cells]


def _gap(nll: float, peer: str, dataset: str) -> float:
    return nll - peers()[peer]["uci"][dataset]["nll"]


def _is_miss(nll: float, dataset: str) -> bool:
    limits = ((_ALL, 0.0), (_SOME, _NEAR))
    return any(_gap(nll, peer, dataset) > limit + ROUNDING for peer, limit in limits)


def _add_goals(results: Results, datasets: list[str], section: Section) -> None:
    gaps: dict[str, list[float | None]] = {_ALL: [], _SOME: []}
    for dataset in datasets:
        nll = _ours(results, dataset, "nll", "EnD2")
        for peer, limit in ((_ALL, 0.0), (_SOME, _NEAR)):
            gap = None if nll is None else _gap(nll.mean, peer, dataset)
            gaps[peer].append(gap)
            if nll is not None and gap is not None and gap > limit + ROUNDING:
                text = f"{dataset}, EnD2, NLL {shown(nll.mean, 3)}, {signed(gap, 3)} to {peer}"
                section.misses.append(Miss(f"splits/{dataset}/EnD2/{peer}", text))
    every = tally(None if gap is None else gap <= ROUNDING for gap in gaps[_ALL])
    below = tally(None if gap is None else gap <= ROUNDING for gap in gaps[_SOME])
    near = tally(None if gap is None else gap <= _NEAR + ROUNDING for gap in gaps[_SOME])
    states = [state_of(below, _BELOW), state_of(near, near.total)]
    found = f"{below.good} at or below, {near.good} within, of {near.measured}"
    section.goals += [
        Goal.counted(
            f"Published splits: EnD2's NLL at or below Deep Ensembles', on {every.total} sets",
            every,
            every.total,
        ),
        Goal(
            f"Published splits: EnD2's NLL at or below Deep Evidential's on {_BELOW}, within "
            f"{_NEAR} on the rest",
            found if near.measured else "",
            min(states, key=(FAILS, NOT_RUN, UNFINISHED, HOLDS).index),
        ),
    ]
