"""The commands and code of the pages work when typed."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from priornet.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAPER = (ROOT / "docs" / "paper.md").read_text()
PAGES = {
    "README.md": README,
    "docs/tables.md": (ROOT / "docs" / "tables.md").read_text(),
    "docs/paper.md": PAPER,
}
WITH_PYTHON = ["README.md", "docs/tables.md"]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("quick_students")
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_blocks_run_one_after_the_other(page, tmp_path, monkeypatch):
    code = blocks(PAGES[page], "python")
    assert code, f"{page} shows no Python code"
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__page__"}
    with torch.random.fork_rng(devices=[]):
        for number, block in enumerate(code, start=1):
            exec(compile(block, f"{page} python block {number}", "exec"), namespace)


def test_counts_are_those_of_the_page_of_results():
    page = ROOT / "docs" / "results.md"
    rows = re.findall(r"^\| [^|]+ \| (\d+ of \d+[;:][^|]+) \|", page.read_text(), re.MULTILINE)
    accuracy, detection = rows[:2]
    good, _, strict, below = re.findall(r"\d+", accuracy)
    not_below, cells, within, above, worse = re.findall(r"\d+", detection)
    text = " ".join(PAPER.split())
    assert f"all {good} cells of RMSE and NLL lie within two combined standard errors" in text
    assert f"(by the paper's errors alone {strict}; {below} means are at or below" in text
    assert f"Of the {cells} cells of error and out-of-domain detection {within} lie within" in text
    assert f"{above} above by more, {worse} below." in text
    assert f"from 101 to {not_below}, across a goal of 104" in text


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b(?=[`\n ])", README))))
def test_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:|#)([^)#]+)", README))))
def test_local_link_leads_somewhere(link):
    assert (ROOT / link).exists()


def make_tables(folder):
    """The files that the pages name: a price to learn, text, a date, missing values, an id."""
    rng = np.random.default_rng(0)
    n = 200
    table = pd.DataFrame(
        {
            "id": np.arange(n),
            "kind": rng.choice(["flat", "house"], n),
            "area": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(4, 0.4, n)),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )
    table["price"] = 4000 * table["area"].fillna(60) * rng.lognormal(0, 0.1, n)
    table["rent"] = table["price"] / 300 + rng.normal(size=n)
    table[:120].to_csv(folder / "data.csv", index=False)
    table[120:150].to_csv(folder / "test.csv", index=False)
    table[150:180].drop(columns="price").to_csv(folder / "new.csv", index=False)
    table[150:180].drop(columns="price").to_parquet(folder / "new.parquet")
    table[180:].assign(area=1e4).to_csv(folder / "other_town.csv", index=False)


@pytest.mark.parametrize("page", PAGES)
def test_commands_run_one_after_the_other(page, tmp_path, monkeypatch):
    lines = "".join(blocks(PAGES[page], "bash")).splitlines()
    commands = [line for line in lines if line.startswith("priornet ")]
    assert commands, f"{page} shows no command"
    monkeypatch.chdir(tmp_path)
    make_tables(tmp_path)
    for command in commands:
        arguments = shlex.split(command, comments=True)[1:]
        if arguments[0] in ("fit", "distill"):
            arguments += ["--epochs", "2"]  # the command as it stands, for a moment
        if arguments[0] == "reproduce":
            # Minutes to an hour, and tables to download: here only that it is understood. What it
            # does is tested with presets that take seconds, in tests/cli.
            arguments += ["--help"]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{command}\n{done.output}"
