"""What one process does of the UCI experiment: some methods on a few folds, trained and scored.

Single network and ensemble are one job, for they share a search; prior networks and evidential ones
are jobs of their own, and so is each student, which waits for its teachers' weights.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from priornet.estimators.model import stack_belief
from priornet.evaluation.results import provenance
from priornet.training.threads import at_most
from priornet_paper.runs.side_by_side import Piece, Tick
from priornet_paper.uci import beyond, paper
from priornet_paper.uci.config import LIKELIHOOD, STUDENTS, Beyond, Config, Paper
from priornet_paper.uci.data import UciTable, canonical_splits, foreign_inputs
from priornet_paper.uci.folds import Fold, FoldStack, k_folds, make_fold
from priornet_paper.uci.parts import Parts
from priornet_paper.uci.score import score

__all__ = ["Block", "Made", "n_splits"]


class Made(NamedTuple):
    """What a job returns."""

    parts: dict[str, Any]
    """Records of every fold, by method."""
    teachers: paper.Teachers | None
    began: float
    ended: float


@dataclass(frozen=True)
class Block:
    """A few folds of one table, and where to work."""

    table: UciTable
    config: Config
    folds: tuple[int, ...]
    parts: Parts | None
    """Where finished ones are kept."""
    device: str = "cpu"
    n_threads: int = 1

    def kept(self, methods: Sequence[str]) -> dict[str, Any]:
        """Parts on disk, by method."""
        if self.parts is None:
            return {}
        found = {method: self.parts.read(method, self.folds) for method in methods}
        return {method: part for method, part in found.items() if part is not None}

    def n_ticks(self, methods: Sequence[str]) -> int:
        """Steps that the jobs of some methods count."""
        if isinstance(self.config, Paper):
            return paper.n_epochs(self.config, methods)
        return len(methods) * len(self.folds)

    def pieces(self, methods: Sequence[str], group: int) -> list[Piece]:
        """The jobs of some methods, each after what it needs."""
        where = f"{self.table.name}, folds {', '.join(map(str, self.folds))}"
        if not isinstance(self.config, Paper):
            job = _Job(self, tuple(methods))
            return [Piece(f"{where}: {', '.join(methods)}", job, group=group)] if methods else []
        gaussian = [m for m in methods if m in LIKELIHOOD]
        students = [m for m in methods if m in STUDENTS]
        first = f"{where}: {', '.join(gaussian) or 'teachers'}"
        found: list[Piece] = []
        if gaussian or students:
            job = _Job(self, (*gaussian, *students), "gaussians")
            found.append(Piece(first, job, group=group))
        for method in methods:
            if method not in gaussian:
                needs = (first,) if method in students else ()
                found.append(Piece(f"{where}: {method}", _Job(self, (method,)), needs, group))
        return found

    def splits(self) -> list[Fold]:
        """Rows of every fold."""
        tests = _test_rows(self.table, self.config)
        share = self.config.validation_share if isinstance(self.config, Paper) else 0.0
        n_rows = len(self.table.targets)
        return [make_fold(i, tests[i], n_rows, share, self.config.seed) for i in self.folds]


def n_splits(table: UciTable, config: Config) -> int:
    """Folds or splits that there are."""
    return len(_test_rows(table, config))


def _test_rows(table: UciTable, config: Config) -> list[Any]:
    if isinstance(config, Beyond) and config.splits == "canonical":
        return canonical_splits(table.name)
    return k_folds(len(table.targets), config.n_folds, config.seed)


@dataclass(frozen=True)
class _Job:
    block: Block
    methods: tuple[str, ...]
    stage: str = ""
    """``"gaussians"``: the single network and the ensemble, and teachers for the students."""

    def __call__(self, needed: Mapping[str, Made], tick: Tick) -> Made:
        began = time.time()
        teachers = next((made.teachers for made in needed.values()), None)
        with at_most(self.block.n_threads):
            if isinstance(self.block.config, Paper):
                parts, taught = self._of_paper(self.block.config, teachers, tick)
            else:
                parts, taught = self._of_ours(self.block.config, tick), None
        signed = {method: {**part, **provenance()} for method, part in parts.items()}
        keep = self.block.parts
        if keep is not None:
            signed = {m: keep.write(m, self.block.folds, part) for m, part in signed.items()}
        return Made(signed, taught, began, time.time())

    def _of_paper(
        self, config: Paper, teachers: paper.Teachers | None, tick: Tick
    ) -> tuple[dict[str, Any], paper.Teachers | None]:
        table, folds = self.block.table, self.block.splits()
        stack = FoldStack.of(table.inputs, table.targets, folds, self.block.device)
        taught = None
        if self.stage == "gaussians":
            outcomes, taught = paper.solve_gaussians(stack, config, self.methods, tick)
        else:
            outcomes = paper.solve(stack, config, self.methods, tick, teachers)
        foreign = _Foreign(table)
        parts: dict[str, Any] = {}
        for method, outcome in outcomes.items():
            records: list[dict[str, Any]] = []
            for place, fold in enumerate(folds):
                networks = outcome.networks[place]
                test = stack.inputs[stack.rows(place, fold.test)]
                strange = torch.as_tensor(foreign.of(fold), dtype=torch.float32)
                unit = (stack.shift[place], stack.scale[place])
                scores = score(
                    stack_belief(networks, test).affine(*unit),
                    table.targets[fold.test],
                    stack_belief(networks, strange).affine(*unit),
                )
                records.append({"fold": fold.number, **scores, "chosen": outcome.chosen[place]})
            parts[method] = {"records": records, "seconds": outcome.seconds}
        return parts, taught

    def _of_ours(self, config: Beyond, tick: Tick) -> dict[str, Any]:
        table, foreign = self.block.table, _Foreign(self.block.table)
        parts: dict[str, Any] = {m: {"records": [], "seconds": 0.0} for m in self.methods}
        for fold in self.block.splits():
            fits = beyond.solve(
                table.inputs, table.targets, fold, config, self.methods, self.block.device, tick
            )
            spread = table.inputs[fold.train].std(0)
            centre = table.inputs[fold.train].mean(0)
            # Back to the table's units: the estimators standardise by themselves.
            strange = centre + foreign.of(fold) * spread
            waits = beyond.latencies({method: fitted.model for method, fitted in fits.items()})
            for method, fitted in fits.items():
                belief = fitted.model.predict_belief
                scores = score(
                    belief(table.inputs[fold.test]), table.targets[fold.test], belief(strange)
                )
                cost = {
                    "multiply_adds": beyond.multiply_adds(fitted.model),
                    "latency_ms": round(waits[method], 4),
                }
                parts[method]["records"].append({"fold": fold.number, **scores, "cost": cost})
                parts[method]["seconds"] += fitted.seconds
        return parts


class _Foreign:
    """Inputs that are foreign to a table; folds of one size share them."""

    def __init__(self, table: UciTable) -> None:
        self.table = table
        self._known: dict[int, Any] = {}

    def of(self, fold: Fold) -> Any:
        """As many as there are test rows."""
        n = len(fold.test)
        if n not in self._known:
            self._known[n] = foreign_inputs(self.table.name, n, self.table.inputs.shape[1])
        return self._known[n]
