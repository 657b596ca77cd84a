"""One of our methods beside the others: ratios by size of table, and performance profiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from tables_methods import PEERS, TREES

Methods = Mapping[str, Mapping[str, Any]]
Difference = Callable[[Methods, str], float | None]

FACTORS = (1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)
CLASSES = {"above 1500 rows": ("middle", "large"), "below 1500 rows": ("small",)}
MEMBERS = "ENSM"
COVERED = 0.87, 0.95


def value(found: Mapping[str, Any], path: str) -> float | None:
    """Look up a score by its path, such as ``knowledge_auc.moved.variance_of_mean``."""
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None  # pyright: ignore[reportAssignmentType]
    return found  # pyright: ignore[reportReturnType]


def best(methods: Methods, names: Iterable[str], path: str) -> float | None:
    """Find the least score of some methods; None if none has it."""
    found = [value(methods[name], path) for name in names if name in methods]
    return min((one for one in found if one is not None), default=None)


def compared(path: str, names: Iterable[str], *, is_ratio: bool) -> Difference:
    """Compare a score of ours with the best of others: their ratio, or their difference."""

    def compare(methods: Methods, ours: str) -> float | None:
        own = value(methods.get(ours, {}), path)
        others = best(methods, [name for name in names if name != ours], path)
        if own is None or others is None or (is_ratio and others == 0):
            return None
        return own / others if is_ratio else own - others

    return compare


def alone(path: str) -> Difference:
    """Take a score of ours as it is."""
    return lambda methods, ours: value(methods.get(ours, {}), path)


AUC = "knowledge_auc.{}.variance_of_mean"
INFORMATION = "knowledge_auc.{}.mutual_information"
ROWS: Mapping[str, tuple[Difference, float | None]] = {
    "RMSE to the best trees": (compared("rmse", TREES, is_ratio=True), 1.01),
    "RMSE to the best peer": (compared("rmse", PEERS, is_ratio=True), 1.01),
    "MAE to the best peer": (compared("mae", PEERS, is_ratio=True), 1.01),
    "CRPS to the best peer": (compared("crps", PEERS, is_ratio=True), 1.01),
    "pinball loss to the best peer": (compared("pinball", PEERS, is_ratio=True), 1.01),
    "NLL minus the best peer's": (compared("nll", PEERS, is_ratio=False), 0.0),
    "NLL of the median row, the same": (compared("nll_median", PEERS, is_ratio=False), 0.0),
    "to the members' mixture: NLL": (compared("nll", [MEMBERS], is_ratio=False), 0.01),
    "to the members' mixture: RMSE": (compared("rmse", [MEMBERS], is_ratio=True), 1.01),
    "fit seconds to the ensemble's": (compared("fit_seconds", [MEMBERS], is_ratio=True), 1.5),
    "fit seconds to CatBoost's with uncertainty": (
        compared("fit_seconds", ["CatBoost-uncertainty"], is_ratio=True),
        None,
    ),
    "fit seconds": (alone("fit_seconds"), None),
    "predict seconds": (alone("predict_seconds"), None),
}
RANGES: Mapping[str, Difference] = {
    "coverage of 90 %, predictive": alone("predictive.coverage"),
    "coverage of 90 %, conformal": alone("conformal.coverage"),
    "width, predictive, to CatBoost's": compared(
        "predictive.width", ["CatBoost-uncertainty"], is_ratio=True
    ),
    "AUC of V[mu], one number moved": alone(AUC.format("moved")),
    "AUC of V[mu], columns permuted": alone(AUC.format("permuted")),
    "AUC of V[mu] minus the ensemble's, moved": compared(
        AUC.format("moved"), [MEMBERS], is_ratio=False
    ),
    "AUC of V[mu] minus TabM's, permuted": compared(
        AUC.format("permuted"), ["TabM"], is_ratio=False
    ),
    "AUC of information, one number moved": alone(INFORMATION.format("moved")),
    "AUC of information, columns permuted": alone(INFORMATION.format("permuted")),
}


def merged(files: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put the methods of several files together; a later file replaces those of an earlier one."""
    found: dict[str, Any] = {}
    for results in files:
        if found.setdefault("most_rows", results["most_rows"]) != results["most_rows"]:
            raise SystemExit("these files had other numbers of rows to learn from.")
        for name, table in results["tables"].items():
            known = found.setdefault("tables", {}).setdefault(name, {**table, "methods": {}})
            known["methods"] |= table["methods"]
    return found


def summarise(results: Mapping[str, Any], ours: str) -> str:
    """Print how our method stands to the best of the others, then the profiles of all methods."""
    tables: Mapping[str, Any] = results["tables"]
    lines: list[str] = []
    for title, sizes in CLASSES.items():
        some = {n: t["methods"] for n, t in tables.items() if t["size"] in sizes}
        lines += [f"{ours}, {title}", *_rows(some, ours), ""]
    for score in ("rmse", "crps"):
        lines += [*_profile(tables, score), ""]
    lines += [*_losses(tables, ours), *_failures(tables)]
    return "\n".join(lines)


def _found(tables: Mapping[str, Methods], ours: str, difference: Difference) -> dict[str, float]:
    found = {name: difference(methods, ours) for name, methods in tables.items()}
    return {name: one for name, one in found.items() if one is not None}


def _rows(tables: Mapping[str, Methods], ours: str) -> list[str]:
    lines = [f"{'':<44}{'median':>9}{'within':>12}{'worst':>9}  on"]
    for title, (difference, limit) in ROWS.items():
        found = _found(tables, ours, difference)
        if not found:
            continue
        worst = max(found, key=lambda name: found[name])
        within = sum(one <= limit for one in found.values()) if limit is not None else None
        share = "" if within is None else f"{within} of {len(found)}"
        middle = float(np.median(list(found.values())))
        lines.append(f"{title:<44}{middle:>9.3f}{share:>12}{found[worst]:>9.3f}  {worst}")
    for title, difference in RANGES.items():
        found = _found(tables, ours, difference)
        if found:
            values = list(found.values())
            least, middle, most = np.quantile(values, [0, 0.5, 1])
            cells = f"{middle:>9.3f}{f'{least:.3f} to':>12}{most:>9.3f}"
            if title.startswith("coverage"):
                within = sum(COVERED[0] <= one <= COVERED[1] for one in values)
                cells += f"  {within} of {len(values)} from {COVERED[0]} to {COVERED[1]}"
            lines.append(f"{title:<44}{cells}")
    return lines


def _profile(tables: Mapping[str, Any], score: str) -> list[str]:
    """Share of tables on which each method is within a factor of the best of all."""
    keys = sorted({key for table in tables.values() for key in table["methods"]})
    header = "".join(f"{factor:>7}" for factor in FACTORS)
    lines = [f"{score.upper()}: share of tables within a factor of the best", f"{'':<24}{header}"]
    for key in keys:
        ratios = _to_best(tables, key, score)
        if ratios:
            shares = "".join(f"{np.mean([r <= f for r in ratios]):>7.2f}" for f in FACTORS)
            lines.append(f"{key:<24}{shares}   of {len(ratios)}")
    return lines


def _to_best(tables: Mapping[str, Any], key: str, score: str) -> list[float]:
    """Compute the ratio of a method's score to the best of all; infinite where it failed."""
    found: list[float] = []
    for table in tables.values():
        methods = table["methods"]
        least = best(methods, methods, score)
        if key in methods and least:
            own = value(methods[key], score)
            found.append(math.inf if own is None else own / least)
    return found if any(map(math.isfinite, found)) else []


def _losses(tables: Mapping[str, Any], ours: str) -> list[str]:
    """Name the tables where ours loses more than a hundredth, the worst first."""
    lines: list[str] = []
    for title in ("RMSE to the best trees", "CRPS to the best peer"):
        difference, limit = ROWS[title]
        found = _found({n: t["methods"] for n, t in tables.items()}, ours, difference)
        lost = sorted(((one, name) for name, one in found.items() if one > (limit or 0)))[::-1]
        named = ", ".join(f"{name} {one:.3f}" for one, name in lost)
        lines.append(f"{title}, above {limit}: {named or 'none'}")
    return lines


def _failures(tables: Mapping[str, Any]) -> list[str]:
    return [
        f"failed: {name}, {key}: {found['error']}"
        for name, table in tables.items()
        for key, found in table["methods"].items()
        if "error" in found
    ]
