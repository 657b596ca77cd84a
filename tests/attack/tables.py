"""Tables of every kind, each read by every way: the same values must give the same matrix.

The oracle is the list of Python values from which a table is made. Nothing is trained: what fit
and predict read goes through the same readers and the same preprocessor as in the commands.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from attack.trial import Attack, Counts
from priornet.messages import InputError, blamed_on
from priornet.tables.preprocessing import TablePreprocessor
from priornet.tables.raw import as_frame
from priornet.tables.read import (
    TableError,
    TableReader,
    convert_known_numbers,
    located,
    read_labelled,
)

__all__ = ["ATTACKS"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_REFUSED = (TableError, InputError, ValueError)
_TARGET = "the target"


@dataclass
class Made:
    """One column, as Python values and in the forms that carry them.

    Attributes:
        values: What it holds; None is missing.
        meaning: For each value a number (days for dates and durations) or a label.
        arrow: As an Arrow array.
        pandas: As a pandas series, in one of the types that can hold it.
        texts: As CSV spells it; None where CSV cannot, or would mean something else.
        silent: Ways that cannot say that its owner called it categorical: a model cannot learn it
            from them, but must find the labels again.
    """

    values: list[Any]
    meaning: list[float | str | None]
    arrow: Any
    pandas: Any
    texts: list[str] | None
    silent: tuple[str, ...] = ()


def _holed(rng: np.random.Generator, values: list[Any]) -> list[Any]:
    share = rng.choice([0, 0, 0.2])
    kept = [None if rng.random() < share else value for value in values]
    return kept if any(value is not None for value in kept) else values


def _spelled(values: list[Any], spell: Callable[[Any], str]) -> list[str]:
    return ["" if value is None else spell(value) for value in values]


def _numbers(values: list[Any]) -> list[float | str | None]:
    return [None if value is None else float(value) for value in values]


def _floats(rng: np.random.Generator, n: int) -> Made:
    size = 10.0 ** rng.integers(-8, 9)
    values = _holed(rng, [float(v) for v in rng.normal(size=n) * size])
    kind = rng.choice(["double", "float", "halffloat"])
    if kind != "double":
        short = np.float32 if kind == "float" else np.float16
        values = [None if v is None else float(short(v / size)) for v in values]
    array = pa.array(values, pa.type_for_alias(kind))
    dtype = rng.choice(["float64", "Float64", "double[pyarrow]", "object"])
    return Made(
        values, _numbers(values), array, pd.Series(values, dtype=dtype), _spelled(values, repr)
    )


def _integers(rng: np.random.Generator, n: int) -> Made:
    low, high, kind, own = [
        (-9, 99, "int8", "Int8"),
        (0, 1, "int32", "Int32"),
        (-(2**63), 2**63, "int64", "Int64"),
        (2**63, 2**64, "uint64", "UInt64"),
        (10**15, 10**17, "int64", "Int64"),
    ][rng.integers(5)]
    values = _holed(
        rng, [int(low + int(rng.integers(2**62)) * (high - low) // 2**62) for _ in range(n)]
    )
    dtypes = [own, f"{kind}[pyarrow]", "object"] + ([kind] if None not in values else [])
    series = pd.Series(values, dtype=rng.choice(dtypes))
    array = pa.array(values, pa.type_for_alias(kind))
    return Made(values, _numbers(values), array, series, _spelled(values, str))


def _booleans(rng: np.random.Generator, n: int) -> Made:
    values = _holed(rng, [bool(v) for v in rng.integers(0, 2, n)])
    dtype = rng.choice(["boolean", "bool[pyarrow]", "object"])
    spell = [str, lambda v: str(v).lower(), lambda v: str(int(v))][rng.integers(3)]
    series = pd.Series(values, dtype=dtype)
    return Made(
        values, _numbers(values), pa.array(values, pa.bool_()), series, _spelled(values, spell)
    )


def _decimals(rng: np.random.Generator, n: int) -> Made:
    digits = int(rng.integers(1, 28))
    scale = int(rng.integers(0, digits + 1))
    numbers = [int("".join(map(str, rng.integers(0, 10, digits)))) for _ in range(n)]
    values = _holed(rng, [Decimal(number).scaleb(-scale) for number in numbers])
    array = pa.array(values, pa.decimal128(38, scale))
    dtype = rng.choice(np.array(["object", pd.ArrowDtype(array.type)], object))
    return Made(
        values, _numbers(values), array, pd.Series(values, dtype=dtype), _spelled(values, str)
    )


def _days(value: Any) -> float:
    """Days since 1970, from whole microseconds."""
    if isinstance(value, dt.timedelta):
        past = value
    elif isinstance(value, dt.datetime):
        past = (value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - _EPOCH
    else:
        past = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC) - _EPOCH
    return float(Fraction(past // dt.timedelta(microseconds=1), 86_400_000_000))


def _moments_of(rng: np.random.Generator, n: int, unit: str) -> list[dt.datetime]:
    """Between the years 1 and 9999, or where nanoseconds reach; some at an end without end."""
    low, high = (-(10**16), 10**16) if unit != "ns" else (-(9 * 10**15), 9 * 10**15)
    if rng.random() < 0.3 and unit != "ns":
        low, high = -62_135_596_800 * 10**6 + 10**12, 253_402_300_799 * 10**6 - 10**12
    step = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[unit]
    ticks = [int(v) // step * step for v in rng.integers(low, high, n)]
    epoch = _EPOCH.replace(tzinfo=None)
    moments = [epoch + dt.timedelta(microseconds=tick) for tick in ticks]
    if unit != "ns" and rng.random() < 0.5:
        moments[rng.integers(n)] = dt.datetime(9999, 12, 31)
    return moments


def _dates(rng: np.random.Generator, n: int) -> Made:
    values = _holed(rng, [moment.date() for moment in _moments_of(rng, n, "us")])
    array = pa.array(values, rng.choice(np.array([pa.date32(), pa.date64()], object)))
    dtype = rng.choice(np.array(["object", pd.ArrowDtype(array.type), "datetime64[s]"], object))
    meaning: list[Any] = [None if v is None else _days(v) for v in values]
    series = pd.Series(values, dtype=dtype)
    return Made(values, meaning, array, series, _spelled(values, lambda v: v.isoformat()))


def _moments(rng: np.random.Generator, n: int) -> Made:
    unit = rng.choice(["s", "ms", "us", "ns"])
    values = _holed(rng, _moments_of(rng, n, unit))
    meaning: list[Any] = [None if v is None else _days(v) for v in values]
    zone = rng.choice(np.array([None, "UTC", "Asia/Tokyo"], object))
    if zone is not None:  # a day from the ends: the moment in its zone must be one too
        day, last = dt.timedelta(days=2), dt.datetime(9999, 12, 30)
        values = [v if v is None else min(v, last - day) for v in values]
        meaning = [None if v is None else _days(v) for v in values]
    array = pa.array(values, pa.timestamp(unit, zone))
    naive = np.array([np.datetime64("NaT") if v is None else np.datetime64(v) for v in values])
    series = pd.Series(naive.astype(f"M8[{unit}]"))
    if zone is not None:
        series = series.dt.tz_localize("UTC").dt.tz_convert(zone)
    series = [series, series.astype(pd.ArrowDtype(array.type))][rng.integers(2)]
    separator = rng.choice(["T", " "])
    texts = _spelled(values, lambda v: v.isoformat(separator) + ("+00:00" if zone else ""))
    return Made(values, meaning, array, series, texts)


def _durations(rng: np.random.Generator, n: int) -> Made:
    unit = rng.choice(["s", "ms", "us", "ns"])
    moments = _moments_of(rng, n, unit)
    values = _holed(rng, [moment - dt.datetime(1970, 1, 1) for moment in moments])
    array = pa.array(values, pa.duration(unit))
    kept = np.array([np.timedelta64("NaT") if v is None else np.timedelta64(v) for v in values])
    series = pd.Series(kept.astype(f"m8[{unit}]"))
    series = [series, series.astype(pd.ArrowDtype(array.type))][rng.integers(2)]
    meaning: list[Any] = [None if v is None else _days(v) for v in values]
    return Made(values, meaning, array, series, None)


_WORDS = ["red", "blue", "dark green", "n/a", "007", "0", "x,y", 'say "no"', "two\nlines", "é", "-"]


def _labels(rng: np.random.Generator, n: int) -> Made:
    words = ["red", *rng.choice(_WORDS, 6)]
    values = _holed(rng, ["red", *(str(word) for word in rng.choice(words, n - 1))])
    values[0] = "red"
    kinds = [pa.string(), pa.large_string(), pa.binary(), pa.string_view()]
    kind = kinds[rng.integers(len(kinds))]
    array = pa.array(values, pa.string()).cast(kind)
    dtype = rng.choice(["object", "str", "string", "large_string[pyarrow]"])
    series = pd.Series(values, dtype=dtype)
    return Made(values, list(values), array, series, _spelled(values, str))


def _spellings(rng: np.random.Generator, n: int) -> Made:
    """Text that means numbers or dates, in every container."""
    kind = rng.integers(3)
    if kind == 0:
        numbers = [round(float(v), 3) for v in rng.normal(size=n) * 100]
        texts, meaning = [f" {v:+} " if v < 0 else str(v) for v in numbers], list(numbers)
    elif kind == 1:
        numbers = [round(float(v), 2) for v in rng.normal(size=n) * 100]
        texts, meaning = [f"{v:.2f}".replace(".", ",") for v in numbers], list(numbers)
    else:
        moments = [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 999, n)]
        basic = rng.random(n) < 0.5
        basic[0] = False
        texts = [
            v.strftime("%Y%m%d") if b else v.isoformat()
            for v, b in zip(moments, basic, strict=True)
        ]
        meaning = [_days(v) for v in moments]
    holes = [False, *(rng.random(n - 1) < rng.choice([0, 0.2]))]
    values = [rng.choice(["", "n/a", "?"]) if h else t for t, h in zip(texts, holes, strict=True)]
    values = [str(v) for v in values]
    own: list[Any] = [None if h else m for m, h in zip(meaning, holes, strict=True)]
    dtype = rng.choice(["object", "str", "string"])
    return Made(values, own, pa.array(values), pd.Series(values, dtype=dtype), values)


def _categories(rng: np.random.Generator, n: int) -> Made:
    kinds: list[list[Any]] = [["a", "b", "c d"], [1, 2, 30], [True, False], [0.5, 1.0, -2.25]]
    choices = kinds[rng.integers(len(kinds))]
    values = _holed(rng, [choices[i] for i in rng.integers(0, len(choices), n)])
    meaning: list[Any] = [None if v is None else str(v).removesuffix(".0") for v in values]
    array = pa.array(values).dictionary_encode()
    series = pd.Series(pd.Categorical(values))
    silent = ("CSV", "mapping") if choices[0] == "a" else ("CSV", "mapping", "Parquet")
    return Made(values, meaning, array, series, _spelled(values, str), silent)


def _times(rng: np.random.Generator, n: int) -> Made:
    values = _holed(rng, [dt.time(int(h), 30) for h in rng.integers(0, 24, n)])
    kind = [pa.time32("s"), pa.time64("us"), pa.time64("ns")][rng.integers(3)]
    array = pa.array(values, kind)
    dtype = rng.choice(np.array(["object", pd.ArrowDtype(kind)], object))
    meaning: list[Any] = [None if v is None else str(v) for v in values]
    series = pd.Series(values, dtype=dtype)
    length = int(rng.choice([5, 8, 15]))  # 12:30, 12:30:00, 12:30:00.000000
    texts = _spelled(values, lambda v: v.isoformat("microseconds")[:length])
    return Made(values, meaning, array, series, texts, () if length == 8 else ("CSV",))


def _periods(rng: np.random.Generator, n: int) -> Made:
    months = pd.period_range("2020-01", periods=20, freq="M")[rng.integers(0, 20, n)]
    values = [str(month) for month in months]
    return Made(values, list(values), pa.array(months), pd.Series(months), values)


def _lists(rng: np.random.Generator, n: int) -> Made:
    values = [[1.0] * int(i) for i in rng.integers(0, 3, n)]
    kind = pa.list_(pa.float64())
    if rng.random() < 0.5:
        values, kind = [{"a": 1} for _ in range(n)], pa.struct([("a", pa.int64())])
    return Made(values, [], pa.array(values, kind), pd.Series(values, dtype=object), None)


_KINDS = (
    *(_floats, _integers, _booleans, _decimals, _dates, _moments, _durations, _labels, _spellings),
    *(_categories, _times, _periods),
)


@dataclass
class Case:
    """One table in all its forms."""

    columns: dict[str, Made]
    n_rows: int
    folder: Path
    rng: np.random.Generator

    def arrow(self) -> Any:
        """As an Arrow table."""
        return pa.table({name: made.arrow for name, made in self.columns.items()})

    def ways(self) -> dict[str, Callable[[Any], Any]]:
        """All ways of reading it, by name: each takes what a model knows, or None for a fit."""
        frame = pd.DataFrame({name: made.pandas for name, made in self.columns.items()})
        arrow = self.arrow()
        half = self.n_rows // 2
        chunked = pa.concat_tables([arrow.slice(0, half), arrow.slice(half)])
        target = pa.array(np.arange(self.n_rows, dtype=float))
        parquet = self.folder / "x.parquet"
        pq.write_table(arrow.append_column(_TARGET, target), parquet, row_group_size=max(half, 1))
        ways: dict[str, Callable[[Any], Any]] = {
            "pandas": lambda _: frame,
            "Arrow": lambda _: arrow,
            "chunks": lambda _: chunked,
            "frame of Arrow": lambda _: as_frame(arrow),
            "Parquet, whole": lambda known: _whole(parquet, known),
            "Parquet, batches": lambda known: _batches(parquet, known),
        }
        objects: dict[str, Any] = {}
        for name, made in self.columns.items():
            objects[name] = np.empty(self.n_rows, object)
            objects[name][:] = made.values
        ways["mapping"] = lambda _: objects
        texts = {name: made.texts for name, made in self.columns.items()}
        if None not in texts.values():
            path = self.folder / "x.csv"
            self._write_csv(path, {**texts, _TARGET: [str(i) for i in range(self.n_rows)]})
            ways["CSV, whole"] = lambda known: _whole(path, known)
            ways["CSV, batches"] = lambda known: _batches(path, known)
        return ways

    def _write_csv(self, path: Path, texts: dict[str, Any]) -> None:
        written = io.StringIO()
        style: Any = int(self.rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        writer = csv.writer(written, delimiter=str(self.rng.choice([",", ";"])), quoting=style)
        writer.writerow(texts)
        writer.writerows(zip(*texts.values(), strict=True))
        path.write_text(written.getvalue(), encoding="utf-8", newline="")


def _whole(path: Path, known: Any) -> Any:
    """As fit reads a file, and evaluate, which knows the columns of a model."""
    names = None if known is None else [column.name for column in known]
    return read_labelled(str(path), [_TARGET], names, known=known).features


def _batches(path: Path, known: Any) -> Any:
    """As predict reads a file."""
    with TableReader(path) as reader:
        batches = list(reader)
    if known is None:
        return pa.Table.from_batches(batches).drop_columns([_TARGET])
    names = [column.name for column in known]
    parts = [convert_known_numbers(batch.select(names), known) for batch in batches]
    return [part.slice(i, size) for part in parts for i, size in _pieces(part.num_rows)]


def _pieces(n_rows: int) -> list[tuple[int, int]]:
    half = (n_rows + 1) // 2
    return [(0, half), (half, n_rows - half)] if n_rows > 1 else [(0, n_rows)]


def _make(rng: np.random.Generator, folder: Path) -> Case:
    n_rows = int(rng.integers(2, 25))
    kinds = [_KINDS[i] for i in rng.integers(0, len(_KINDS), rng.integers(1, 5))]
    if rng.random() < 0.05:
        kinds.append(_lists)
    columns = {f"{j} {kind.__name__}": kind(rng, n_rows) for j, kind in enumerate(kinds)}
    return Case(columns, n_rows, folder, rng)


def _matrix(prep: TablePreprocessor, table: Any) -> Any:
    parts = table if isinstance(table, list) else [table]
    return np.concatenate([prep.transform(part) for part in parts])


def _expected(prep: TablePreprocessor, case: Case, found: Any) -> bool:
    """Tell if a matrix agrees with the values, to the rounding of one standardisation."""
    names = list(prep.feature_names_out_)
    for (name, made), learnt in zip(case.columns.items(), prep.columns_, strict=True):
        missing = [meaning is None for meaning in made.meaning]
        if any(missing) and found[:, names.index(f"{name} is missing")].tolist() != missing:
            return False
        for row, meaning in enumerate(made.meaning):
            if meaning is None:
                continue
            if isinstance(meaning, str):
                own = [j for j, out in enumerate(names) if out.startswith(f"{name} = ")]
                label = names.index(f"{name} = {meaning.strip()}")
                if [found[row, j] for j in own] != [float(j == label) for j in own]:
                    return False
            else:
                value = found[row, names.index(name)] * learnt.scale + learnt.mean
                if abs(value - meaning) > 1e-9 * (abs(meaning) + abs(learnt.mean) + learnt.scale):
                    return False
    return True


def _try(case: Case, counts: Counts) -> None:
    """Learn from one way, read by all; then learn from every way."""
    ways = case.ways()
    silent = tuple(way for made in case.columns.values() for way in made.silent)
    teaching = [name for name in ways if not name.startswith(silent)]
    if any(not made.meaning for made in case.columns.values()):  # lists: nobody may take them
        taken = [name for name in ways if _fitted(ways[name]) is not None]
        counts["refused_by_some"] += bool(taken)
        return
    learnt = {name: _fitted(ways[name]) for name in teaching}
    states = [None if prep is None else prep.to_json() for prep in learnt.values()]
    counts["refused_by_some"] += None in states
    counts["learnt_otherwise"] += any(state != states[0] for state in states)
    prep = learnt[str(case.rng.choice(teaching))]
    if prep is None:
        return
    found: dict[str, Any] = {}
    for name, way in ways.items():
        try:
            with blamed_on(name), located(name):
                found[name] = _matrix(prep, way(prep.columns_))
        except _REFUSED:
            counts["taken_by_fit_refused_by_predict"] += 1
            return
    first = next(iter(found.values()))
    counts["matrices_differ"] += any(not np.array_equal(first, one) for one in found.values())
    counts["matrices_wrong"] += not _expected(prep, case, first)


def _fitted(way: Callable[[Any], Any]) -> TablePreprocessor | None:
    try:
        with blamed_on("x"), located("x"):
            return TablePreprocessor().fit(way(None))
    except _REFUSED:
        return None


def differential_reading(seed: int, tries: int, folder: Path) -> Counts:
    """Make tables, read each by every way, and compare."""
    counts = {"tries": tries, **dict.fromkeys(_MUST_BE_ZERO, 0)}
    for number in range(tries):
        rng = np.random.default_rng([seed, number])
        _try(_make(rng, folder), counts)
    return counts


_MUST_BE_ZERO = (
    "matrices_differ",
    "matrices_wrong",
    "learnt_otherwise",
    "refused_by_some",
    "taken_by_fit_refused_by_predict",
)

ATTACKS = (
    Attack(
        "differential-reading",
        "Every way of reading a table gives the same matrix, and predict takes what fit took.",
        differential_reading,
        5000,
        _MUST_BE_ZERO,
    ),
)
