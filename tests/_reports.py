"""Real fitted models and their evaluations, and a real browser to look at pages with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from priornet.estimators import DeepEnsembleRegressor, GaussianRegressor, PriorNetRegressor
from priornet.evaluation import Evaluation, evaluate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<script>window.hacked = 1</script>"
"""Name of a column in every table here."""
HOSTILE_CITY = '<img src=x onerror="window.hacked = 1">'


def table(n: int, seed: int, shift: float = 0.0) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers, text, dates, missing values; ``shift`` moves two columns out of range."""
    rng = np.random.default_rng(seed)
    age, income = rng.normal(40 + 60 * shift, 12, n), rng.lognormal(3 + 3 * shift, 0.5, n)
    city = rng.choice(["Paris", "Lima", HOSTILE_CITY], n, p=[0.5, 0.3, 0.2])
    height = np.where(rng.random(n) < 0.1, np.nan, rng.normal(170, 9, n))
    noise = rng.normal(size=n) * (3 + 0.3 * np.abs(age - 40))
    frame = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "city": city,
            "since": np.datetime64("2023-01-01") + rng.integers(0, 700, n).astype("m8[D]"),
            "height": height,
            HOSTILE: rng.normal(size=n),
        },
        index=[f"row {i}" for i in range(n)],
    )
    y = 60 * np.sin(age / 8) + income + 10 * (city == "Lima") + noise
    return frame, pd.Series(y, index=frame.index, name="price")


@dataclass(frozen=True)
class Case:
    """A fitted model with rows to evaluate it on."""

    model: Any
    X: Any
    y: Any
    X_ood: Any

    def evaluate(self, **options: Any) -> Evaluation:
        return evaluate(self.model, self.X, self.y, self.X_ood, **options)


@pytest.fixture(scope="session")
def make_table():
    """:func:`table`, for tests that fit models of their own."""
    return table


@pytest.fixture(scope="session")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    """Rows to evaluate on, with three that are unfamiliar on purpose."""
    X, y = table(150, seed=1)
    X.loc["row 5", "city"] = "Atlantis"
    X.loc["row 7", "age"] = 140.0
    X.loc["row 9", "income"] = 900.0
    return X, y


@pytest.fixture(scope="session")
def ensemble(rows) -> Case:
    model = DeepEnsembleRegressor(3, hidden=(32,), epochs=30, random_state=0)
    return Case(model.fit(*table(400, seed=0)), rows[0], rows[1], table(80, seed=2, shift=1.0)[0])


@pytest.fixture(scope="session")
def single(rows) -> Case:
    """No knowledge uncertainty; an array without names; no out-of-domain rows."""
    X, y = table(120, seed=0)
    columns = ["age", "income"]
    model = GaussianRegressor(hidden=(16,), epochs=10, random_state=0)
    model.fit(X[columns].to_numpy(), y.to_numpy())
    return Case(model, rows[0][columns].to_numpy(), rows[1].to_numpy(), None)


@pytest.fixture(scope="session")
def two_targets() -> Case:
    """A Student-T predictive and two targets."""
    X, y = table(200, seed=0)
    Y = pd.DataFrame({"price": y, "size <b>": X["height"].fillna(170.0) * 10})
    model = PriorNetRegressor(hidden=(16,), epochs=10, random_state=0).fit(X, Y)
    X_new, y_new = table(60, seed=3)
    Y_new = pd.DataFrame({"price": y_new, "size <b>": X_new["height"].fillna(170.0) * 10})
    return Case(model, X_new, Y_new, table(40, seed=4, shift=1.0)[0])


@pytest.fixture(scope="session")
def evaluation(ensemble) -> Evaluation:
    return ensemble.evaluate()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium without a window."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"no browser on PATH (looked for {', '.join(names)}): the page is not drawn")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


@dataclass
class Opened:
    """An open page, and everything that it complained about or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)

    def wait_until_drawn(self, form: str) -> None:
        """Wait for the charts in their light, dark or printed form."""
        self.page.wait_for_selector(f"html[data-drawn={form}]", state="attached")

    def chart(self, identifier: str) -> list[dict[str, Any]]:
        """The traces that Plotly holds for a chart, as drawn."""
        return self.page.evaluate(
            """id => document.getElementById(id)._fullData.map(trace => ({
                name: trace.name, x: trace.x, y: trace.y, text: trace.text,
                up: trace.error_y?.array, down: trace.error_y?.arrayminus,
                colour: trace.mode === "markers" ? trace.marker.color : trace.line.color,
            }))""",
            identifier,
        )


@pytest.fixture(scope="session")
def open_page(browser):
    """Open a file and wait until every chart is drawn."""

    def opened(path, form: str = "light", **options: Any) -> Opened:
        page = browser.new_context(**options).new_page()
        record = Opened(page)
        page.on("console", lambda message: record.complaints.append(message.text))
        page.on("pageerror", lambda error: record.complaints.append(str(error)))
        page.on("request", lambda request: record.requests.append(request.url))
        page.on("requestfinished", lambda request: record.finished.append(request.url))
        page.goto(path.as_uri())
        record.wait_until_drawn(form)
        return record

    return opened
