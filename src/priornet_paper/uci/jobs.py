"""The jobs of the UCI experiment: some methods, trained and scored on a few folds of one table.

The single network and the ensemble are one job, since they share a train. Prior networks and
evidential networks are jobs of their own; so is each student, which waits for its teachers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray

from priornet.evaluation import provenance
from priornet.nn import stack_belief
from priornet.training import at_most
from priornet_paper.runs.jobs import Job, Report
from priornet_paper.runs.scores import SCORES, score
from priornet_paper.runs.store import Store, fingerprint
from priornet_paper.uci import defaults, train
from priornet_paper.uci.config import LIKELIHOOD, STUDENTS, Config, Defaults, Paper
from priornet_paper.uci.data import UciTable, canonical_splits, ood_inputs
from priornet_paper.uci.folds import Fold, FoldStack, k_folds, make_fold


class Made(NamedTuple):
    """The result of a job."""

    parts: dict[str, Any]
    """By method: its records of every fold, and its provenance."""
    teachers: train.Teachers | None
    began: float
    ended: float


@dataclass(frozen=True)
class Block:
    """A few folds of one table, and where to work."""

    table: UciTable
    config: Config
    folds: tuple[int, ...]
    store: Store
    device: str = "cpu"
    n_threads: int = 1

    def name_of(self, method: str) -> str:
        """Return the file name of a method's part."""
        return f"{method}.{'-'.join(map(str, self.folds))}.json"

    def fingerprint(self, method: str) -> str:
        """Return the fingerprint of everything that a method's numbers depend on."""
        return fingerprint([self.config.settings_of(method), len(self.table.targets)])

    def read(self, method: str) -> dict[str, Any] | None:
        """Read a finished part, or return None if it has to be made."""
        name = self.name_of(method)
        return self.store.read(name, lambda: self.fingerprint(method), self._is_whole)

    def write(self, method: str, part: dict[str, Any]) -> dict[str, Any]:
        """Keep a finished part."""
        return self.store.write(self.name_of(method), self.fingerprint(method), part)

    def _is_whole(self, part: Mapping[str, Any]) -> bool:
        records = part.get("records")
        if not isinstance(records, list) or len(records) != len(self.folds):
            return False
        return all(
            isinstance(record, dict)
            and record.get("fold") == fold
            and all(isinstance(record.get(name), float) for name in SCORES)
            for record, fold in zip(records, self.folds, strict=True)
        )

    def n_steps(self, methods: Sequence[str]) -> int:
        """Count the events that the jobs of some methods report."""
        if isinstance(self.config, Paper):
            return train.n_epochs(self.config, methods)
        return len(methods) * len(self.folds)

    def jobs(self, methods: Sequence[str]) -> list[Job]:
        """List the jobs of some methods, each after those that it needs."""
        where = f"{self.table.name}, folds {', '.join(map(str, self.folds))}"
        if not methods:
            return []
        if not isinstance(self.config, Paper):
            return [Job(f"{where}: {', '.join(methods)}", _Work(self, tuple(methods)))]
        gaussian = [m for m in methods if m in LIKELIHOOD]
        students = [m for m in methods if m in STUDENTS]
        first = f"{where}: {', '.join(gaussian) or 'teachers'}"
        found: list[Job] = []
        if gaussian or students:
            found.append(Job(first, _Work(self, (*gaussian, *students), are_gaussian=True)))
        for method in methods:
            if method not in gaussian:
                needs = (first,) if method in students else ()
                found.append(Job(f"{where}: {method}", _Work(self, (method,)), needs))
        return found

    def splits(self) -> list[Fold]:
        """Return the rows of every fold."""
        tests = _test_rows(self.table, self.config)
        share = self.config.validation_share if isinstance(self.config, Paper) else 0.0
        n_rows = len(self.table.targets)
        return [make_fold(i, tests[i], n_rows, share, self.config.seed) for i in self.folds]


def n_splits(table: UciTable, config: Config) -> int:
    """Count the folds or published splits of a table."""
    return len(_test_rows(table, config))


def _test_rows(table: UciTable, config: Config) -> list[Any]:
    if isinstance(config, Defaults) and config.splits == "canonical":
        return canonical_splits(table.name)
    return k_folds(len(table.targets), config.n_folds, config.seed)


@dataclass(frozen=True)
class _Work:
    block: Block
    methods: tuple[str, ...]
    are_gaussian: bool = False
    """The single network, the ensemble, and teachers for the students among the methods."""

    def __call__(self, needed: Mapping[str, Made], report: Report) -> Made:
        began = time.time()
        teachers = next((made.teachers for made in needed.values()), None)

        def tick() -> None:
            report(None)

        with at_most(self.block.n_threads):
            if isinstance(self.block.config, Paper):
                parts, teachers = self._by_protocol(self.block.config, teachers, tick)
            else:
                parts = self._by_estimators(self.block.config, tick)
        signed = {m: self.block.write(m, {**part, **provenance()}) for m, part in parts.items()}
        return Made(signed, teachers, began, time.time())

    def _by_protocol(
        self, config: Paper, teachers: train.Teachers | None, tick: Callable[[], object]
    ) -> tuple[dict[str, Any], train.Teachers | None]:
        """Train as the paper does; return the parts, and the teachers that students need."""
        table, folds = self.block.table, self.block.splits()
        stack = FoldStack.of(table.inputs, table.targets, folds, self.block.device)
        trained = None
        if self.are_gaussian:
            outcomes, trained = train.solve_gaussians(stack, config, self.methods, tick)
        else:
            outcomes = train.solve(stack, config, self.methods, tick, teachers)
        ood = _ood_inputs_of(table)
        parts: dict[str, Any] = {}
        for method, outcome in outcomes.items():
            records: list[dict[str, Any]] = []
            for place, fold in enumerate(folds):
                networks = outcome.networks[place]
                test = stack.inputs[stack.rows(place, fold.test)]
                outside = torch.as_tensor(ood(len(fold.test)), dtype=torch.float32)
                unit = (stack.shift[place], stack.scale[place])
                scores = score(
                    stack_belief(networks, test).affine(*unit),
                    table.targets[fold.test],
                    stack_belief(networks, outside).affine(*unit),
                )
                records.append({"fold": fold.number, **scores, "chosen": outcome.chosen[place]})
            parts[method] = {"records": records, "seconds": outcome.seconds}
        return parts, trained

    def _by_estimators(self, config: Defaults, tick: Callable[[], object]) -> dict[str, Any]:
        """Fit the estimators with their own defaults; return the parts."""
        table, ood = self.block.table, _ood_inputs_of(self.block.table)
        parts: dict[str, Any] = {m: {"records": [], "seconds": 0.0} for m in self.methods}
        for fold in self.block.splits():
            fits = defaults.fit_methods(
                table.inputs, table.targets, fold, config, self.methods, self.block.device, tick
            )
            # Back to the table's units: the estimators standardise by themselves.
            X = table.inputs[fold.train]
            outside = X.mean(0) + ood(len(fold.test)) * X.std(0)
            waits = defaults.latencies({method: fitted.model for method, fitted in fits.items()})
            for method, fitted in fits.items():
                belief = fitted.model.predict_belief
                scores = score(
                    belief(table.inputs[fold.test]), table.targets[fold.test], belief(outside)
                )
                cost = {
                    "multiply_adds": defaults.multiply_adds(fitted.model),
                    "latency_ms": round(waits[method], 4),
                }
                parts[method]["records"].append({"fold": fold.number, **scores, "cost": cost})
                parts[method]["seconds"] += fitted.seconds
        return parts


def _ood_inputs_of(table: UciTable) -> Callable[[int], NDArray[Any]]:
    """Return a function that gives so many out-of-domain inputs; folds of one size share them."""
    return functools.cache(lambda n: ood_inputs(table.name, n, table.inputs.shape[1]))
