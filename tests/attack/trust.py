"""Rows that no model can know anything about, and ordinary ones: which are trusted.

Small models of every method learn generated tables. Rows of the test part then lose values that
training always had, or nearly all of them, or get new labels or huge numbers; or the weights are
made so large that no prediction is a number. The word of each row is asked for in Python, from the
command line and from the exported graph. Ordinary rows must still be trusted: a model that trusts
nothing would be no use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.random import Generator

import priornet
from attack.trial import Attack, Counts
from priornet.estimators import ModelError
from priornet.evaluation import score_file
from priornet.export import to_onnx
from priornet.export.agreement import GraphFile

_ROWS_PER_MODEL = 20
_N_ORDINARY = 40
_LEAST_TRUSTED = 0.8
"""Share of all ordinary rows that must be trusted."""
_QUICK: dict[str, Any] = {"hidden": (16,), "epochs": 40}
_STUDENT: dict[str, Any] = {**_QUICK, "n_members": 3, "student_epochs": 10, "n_transfer": 1500}
METHODS: tuple[Callable[..., Any], ...] = (
    lambda **seed: priornet.GaussianRegressor(**_QUICK, **seed),
    lambda **seed: priornet.DeepEnsembleRegressor(3, **_QUICK, **seed),
    lambda **seed: priornet.PriorNetRegressor(**_QUICK, **seed),
    lambda **seed: priornet.EvidentialRegressor(**_QUICK, **seed),
    lambda **seed: priornet.DistilledRegressor(**_STUDENT, **seed),
    lambda **seed: priornet.DistilledRegressor(objective="end", **_STUDENT, **seed),
    lambda **seed: priornet.DistilledRegressor(objective="md-end", **_STUDENT, **seed),
)


@dataclass(frozen=True)
class Table:
    """A generated table, and what is known of it because it was made so.

    Attributes:
        train: Features to learn from; no row lacks more than half of them.
        target: Their target.
        test: More rows of the same kind.
        complete: Columns in which no row of training lacks a value.
        labels: Columns of labels.
        numbers: Columns of numbers.
        dates: Columns of dates.
    """

    train: pd.DataFrame
    target: pd.Series
    test: pd.DataFrame
    complete: list[str]
    labels: list[str]
    numbers: list[str]
    dates: list[str]


def make_table(rng: Generator) -> Table:
    """Numbers, labels, dates and truth values; some columns lack values, in some tables all do."""
    n_train, n_columns = int(rng.integers(60, 300)), int(rng.integers(3, 10))
    n_rows = n_train + _N_ORDINARY
    kinds = ["normal", *rng.choice(["normal", "whole", "large", "label", "date", "flag"],
                                   n_columns - 1)]  # fmt: skip
    columns: dict[str, Any] = {}
    signal = rng.normal(0, 0.1, n_rows)
    for j, kind in enumerate(kinds):
        codes = rng.integers(0, 4, n_rows)
        values = rng.normal(size=n_rows)
        if kind == "whole":
            values = rng.integers(0, 50, n_rows).astype(float)
        elif kind == "large":
            values = 1e6 + 1e3 * values
        elif kind == "label":
            values = np.array(["red", "blue", "green", "grey"], object)[codes]
        elif kind == "date":
            values = pd.Timestamp("2020-01-01") + pd.to_timedelta(codes * 30 + 1, "D")
        elif kind == "flag":
            values = codes > 1
        columns[f"{kind}{j}"] = values
        signal = signal + (codes / 4 if kind in ("label", "date", "flag") else _scaled(values))
    frame = pd.DataFrame(columns)
    share = float(rng.choice([0.0, 0.5, 1.0]))
    lacking = [c for c in frame if rng.random() < share and not c.startswith("flag")]
    for column in lacking:
        frame[column] = frame[column].mask(rng.random(n_rows) < rng.uniform(0.02, 0.15))
    too_bare = frame.isna().sum(axis=1) > n_columns // 2
    frame.loc[too_bare] = frame.bfill().ffill()[too_bare]
    train: Any = frame[:n_train]
    return Table(
        train,
        pd.Series(signal[:n_train], name="y"),
        frame.iloc[n_train:].reset_index(drop=True),
        [c for c in frame if not train[c].isna().any()],
        [c for c in frame if c.startswith("label")],
        [c for c in frame if c.startswith(("normal", "whole", "large"))],
        [c for c in frame if c.startswith("date")],
    )


def _scaled(values: Any) -> Any:
    return (values - values.mean()) / values.std()


def _emptied(rng: Generator, table: Table, row: dict[str, Any]) -> None:
    for column in rng.choice(table.complete, int(rng.integers(1, len(table.complete) + 1)), False):
        row[column] = None


def _nearly_empty(rng: Generator, table: Table, row: dict[str, Any]) -> None:
    for column in rng.permutation(list(row))[1:]:
        row[column] = None


def _empty(rng: Generator, table: Table, row: dict[str, Any]) -> None:
    row.update(dict.fromkeys(row))


def _new_label(rng: Generator, table: Table, row: dict[str, Any]) -> None:
    row[str(rng.choice(table.labels))] = str(rng.choice(["violet", "rouge", "0", "x" * 300, "ä"]))


def _huge(rng: Generator, table: Table, row: dict[str, Any]) -> None:
    for column in rng.choice(table.numbers, int(rng.integers(1, len(table.numbers) + 1)), False):
        row[column] = float(rng.choice([-1, 1]) * 10 ** rng.uniform(8, 307))
    for column in table.dates if rng.random() < 0.5 else []:
        row[column] = pd.Timestamp(rng.choice(["1700-01-01", "1990-05-03", "2250-12-31"]))


def hostile_rows(rng: Generator, table: Table, n: int) -> pd.DataFrame:
    """Ordinary rows with one thing, or two, that training gives no ground for."""
    kinds = [_nearly_empty, _empty, _huge]
    kinds += [_emptied] if table.complete else []
    kinds += [_new_label] if table.labels else []
    rows: list[dict[str, Any]] = []
    for i in rng.integers(0, len(table.test), n):
        row: dict[str, Any] = table.test.iloc[i].to_dict()
        for change in rng.permutation(np.array(kinds, object))[: rng.integers(1, 3)]:
            change(rng, table, row)
        rows.append(row)
    made = pd.DataFrame(rows, columns=list(table.test), dtype=object)
    for column in made:
        if column in table.numbers:
            made[column] = pd.to_numeric(made[column])
        elif column in table.dates:
            made[column] = pd.to_datetime(made[column])
    return made


def _words_in_python(model: Any, rows: pd.DataFrame, folder: Path) -> list[str]:
    return list(model.predict_verdict(rows, return_columns=True)[0])


def _words_of_commands(model: Any, rows: pd.DataFrame, folder: Path) -> list[str]:
    model.save(folder / "model")
    rows.to_csv(folder / "rows.csv", index=False)
    score_file(priornet.load(folder / "model"), folder / "rows.csv", folder / "out.csv")
    return pd.read_csv(folder / "out.csv")["verdict"].tolist()


def _words_of_a_graph(model: Any, rows: pd.DataFrame, folder: Path) -> list[str]:
    to_onnx(model, folder / "model.onnx")
    return list(GraphFile(folder / "model.onnx").score(model, rows)["verdict"])


_WAYS = (_words_in_python, _words_in_python, _words_of_commands, _words_of_a_graph)


def _overflow(model: Any) -> None:
    """Make weights so large that two layers of them have no finite product."""
    weights = model.fitted_.stack.weights
    with torch.no_grad():
        weights.mul_(torch.finfo(weights.dtype).max ** 0.9)


def _refused(ask: Callable[[], list[str]]) -> list[str]:
    """Words, or none where the model, or its folder, is refused."""
    try:
        return ask()
    except (ArithmeticError, ModelError):
        return []


def attack_rows(seed: int, tries: int, folder: Path) -> Counts:
    """Ask for the words of so many rows without grounds, and of ordinary ones."""
    counts: Counter[str] = Counter()
    number = 0
    while counts["tries"] < tries:
        rng = np.random.default_rng([seed, number])
        table, make = make_table(rng), METHODS[number % len(METHODS)]
        model = make(random_state=int(rng.integers(1 << 30))).fit(table.train, table.target)
        words = _words_in_python(model, table.test, folder)
        counts["ordinary"] += len(words)
        counts["ordinary_trusted"] += words.count("trust")
        counts["ordinary_unfamiliar"] += words.count("unfamiliar")
        rows = hostile_rows(rng, table, min(_ROWS_PER_MODEL, tries - counts["tries"]))
        way = _WAYS[int(rng.integers(len(_WAYS)))]
        words = way(model, rows, folder)
        assert len(words) == len(rows)
        counts["tries"] += len(rows)
        counts["trusted"] += len(rows) - words.count("unfamiliar")
        _overflow(model)
        words = _refused(lambda way=way, model=model, table=table: way(model, table.test, folder))
        counts["overflowing"] += len(table.test)
        counts["overflowing_trusted"] += len(words) - words.count("unfamiliar")
        number += 1
    share = counts["ordinary_trusted"] / counts["ordinary"]
    return {**counts, "too_few_trusted": int(share < _LEAST_TRUSTED)}


ATTACKS = (
    Attack(
        "rows-without-grounds",
        "A row with missing values where training had none, hardly any value, a new label or a "
        "huge number, or whose prediction overflows, is unfamiliar or refused, never trusted; "
        f"at least {_LEAST_TRUSTED:.0%} of ordinary rows are trusted.",
        attack_rows,
        1000,
        ("trusted", "overflowing_trusted", "too_few_trusted"),
    ),
)
