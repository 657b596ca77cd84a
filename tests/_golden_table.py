"""A small table with everything that tables have, and all that a model says of some rows."""

from dataclasses import fields

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from priornet.cli import app

RUNNER = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})


def make_table(n_rows=140):
    """Numbers, labels, dates and missing values, and two targets."""
    rng = np.random.default_rng(24)
    size, rooms = rng.normal(12, 3, n_rows), rng.integers(1, 6, n_rows)
    age = np.where(rng.random(n_rows) < 0.15, np.nan, rng.uniform(0, 60, n_rows))
    town = rng.choice(["Aix", "Bern", "Como"], n_rows, p=[0.5, 0.3, 0.2])
    days = rng.integers(0, 5000, n_rows)
    price = (
        size / 4 + rooms + (town == "Bern") + days / 2000 + 0.1 * rooms**2 * rng.normal(size=n_rows)
    )
    rent = price / 3 - np.nan_to_num(age) / 50 + 0.2 * rng.normal(size=n_rows)
    return pd.DataFrame(
        {
            "size": size.round(3),
            "rooms": rooms,
            "age": age.round(1),
            "town": pd.Series(town).mask(rng.random(n_rows) < 0.05, None),
            "built": (np.datetime64("2005-01-01") + days).astype("datetime64[D]").astype(str),
            "price": price.round(3),
            "rent": rent.round(3),
        }
    )


# Ordinary rows; a missing age; no size, which training always had; an unknown town; a far size.
ROWS = pd.DataFrame(
    {
        "size": [11.5, 14.25, 9.75, 12.0, np.nan, 13.5, 90.0, 4.0],
        "rooms": [2, 3, 5, 1, 3, 2, 4, 5],
        "age": [10.5, 33.0, 59.5, np.nan, 21.5, 44.0, 12.5, np.nan],
        "town": ["Aix", "Bern", "Como", "Aix", "Bern", "Oslo", "Aix", None],
        "built": ["2006-02-03", "2012-11-30", "2018-06-15", "2009-09-09"] * 2,
        "price": [6.5, 8.9, 9.1, 5.0, 8.0, 7.2, 27.0, 8.0],
    }
)
INPUTS = list(ROWS.columns[:5])


def call(*words):
    """Run a command, and return what it prints."""
    done = RUNNER.invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def added_columns(model, tmp_path, *options):
    """Predict with a saved model from the command line: the columns that it adds."""
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out.csv"
    call("predict", model, tmp_path / "rows.csv", "--out", out, "--overwrite", *options)
    table = pd.read_csv(out, keep_default_na=False)
    assert list(table.columns[: ROWS.shape[1]]) == list(ROWS.columns)
    return {name: numbers(table[name]) for name in table.columns[ROWS.shape[1] :]}


def numbers(column):
    """Read text as numbers where all of it are some."""
    try:
        return [float(value) for value in column]
    except ValueError:
        return list(column)


def answers(model):
    """Ask a fitted model for all that it says of some rows."""
    rows = ROWS[INPUTS]
    mean, std = model.predict(rows, return_std=True)
    measured = model.predict_uncertainty(rows)
    verdict, unseen = model.predict_verdict(rows, return_columns=True)
    found = {"mean": mean, "std": std, "verdict": verdict, "unseen": unseen}
    for method in ("predictive", "conformal"):
        found[method] = list(model.predict_interval(rows, 0.8, method))
    own = {field.name: getattr(measured, field.name) for field in fields(measured)}
    return {**found, **own, "index": list(measured.index)}
