"""Results on a terminal: tables, sentences, messages about columns, and progress."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from priornet.messages import counted, printable
from priornet.methods import COLOURS

if TYPE_CHECKING:
    from rich.table import Table

    from priornet.estimators import ColumnSummary
    from priornet.evaluation import Evaluation

_MOST_NOTES = 20  # about columns


def unseen_rows(n_rows: int) -> str:
    """Say how many rows have what training never had; the sentence goes on."""
    verb = "is" if n_rows == 1 else "are"
    return f"{counted(n_rows)} {verb} unfamiliar for what training never had"


def say_columns(
    path: str, summaries: Sequence[ColumnSummary], notes: Sequence[str], *, quiet: bool = False
) -> None:
    """Print a line for each column and note; a wide table's are cut, and whole in the JSON.

    Args:
        path: The table.
        summaries: How its columns are read.
        notes: Messages about it.
        quiet: Print the messages only.
    """
    from priornet.tables.column_summaries import summary_lines

    lines: list[str] = []
    if summaries and not quiet:
        lines.append(f"{path}: columns as they are read:")
        lines += [f"  {line}" for line in summary_lines(summaries)]
    lines += [f"Warning: {path}: {note}" for note in notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        lines.append(f"Warning: {path}: {len(notes) - _MOST_NOTES} more; --json lists them.")
    for line in lines:
        typer.echo(printable(line), err=True)


def print_evaluation(evaluation: Evaluation) -> None:
    """Print scores as a table, and the columns in which rows are unlike training."""
    scores = evaluation.metrics
    title = f"{evaluation.name} on {counted(scores['n_rows'])}"
    print_table(title, ("value", "meaning"), _score_rows(scores, evaluation.interval))
    unseen = scores["unseen"]
    if unseen["n_rows"]:
        listing = ", ".join(f'"{name}" ({count})' for name, count in unseen["columns"].items())
        print_lines([f"{unseen_rows(unseen['n_rows'])}, in {listing}."])


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences, each on a line of its own, paths unbroken."""
    from rich.console import Console

    console = Console()
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def print_table(title: str, headers: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of plain text: the first column names the rows."""
    from rich.console import Console
    from rich.markup import escape

    table = method_table(title, headers)
    for row in rows:
        table.add_row(*map(escape, row))  # "[kg]" in a name is no markup
    Console().print(table)


def method_table(title: str, headers: Iterable[str]) -> Table:
    """Make an empty table: a column for the name of each row, and one for each header."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for header in headers:
        table.add_column(header, justify="left" if header == "meaning" else "right")
    return table


def coloured(name: str) -> str:
    """Mark up a method's name in its colour; a variant's in that of its method."""
    colour = COLOURS.get(name) or COLOURS[name.partition("-")[0]]
    return f"[bold {colour}]{name}[/]"


def score(value: float | None) -> str:
    """Write a score, in full where it is large: a price is off by 69,980, not by 6.998e+04."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


@contextmanager
def progress(total: int | None, unit: str, *, shown: bool) -> Generator[Callable[..., None]]:
    """Show how many are done and the time left, on standard error.

    Yields a function to call with the number of new ones, and with their total once it is known.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("Scoring"),
        BarColumn(),
        TextColumn(f"{{task.completed:>10,.0f}} {unit}  time left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task("", total=total)

        def advance(count: int, total: int | None = None) -> None:
            bar.update(task, advance=count, total=total)

        yield advance


def _score_rows(scores: Mapping[str, Any], interval: Mapping[str, Any]) -> list[Sequence[str]]:
    targets: Mapping[str, Any] = scores["targets"]
    rows: list[Sequence[str]] = []
    for name, own in targets.items():
        suffix = f" {name}" if len(targets) > 1 else ""
        rows.append((f"RMSE{suffix}", score(own["rmse"]), "typical error, in target units"))
    rows.append(("NLL", score(scores["nll"]), "negative log-likelihood; lower is better"))
    if len(targets) == 1:  # over several it is a sum, of units that may differ
        meaning = "error of the whole distribution, in target units"
        rows.append(("CRPS", score(scores["crps"]), meaning))
    for method, share in interval["observed"].items():
        wanted = f"of targets in the {interval['coverage']:.0%} interval ({method})"
        rows.append(("coverage", f"{share:.1%}", wanted))
    prr = scores["prr"]["total_variance"]
    if prr is not None:
        rows.append(("PRR", score(prr), "how well uncertainty ranks errors; 1 is perfect"))
    for measure, auc in scores.get("ood_auc", {}).items():
        if measure in ("variance_of_mean", "total_variance"):
            meaning = f"{measure.replace('_', ' ')} tells the other table apart; 1 is perfect"
            rows.append(("OOD AUC", score(auc), meaning))
    words = ", ".join(f"{count} {word}" for word, count in scores["verdicts"].items())
    rows.append(("rows", str(scores["n_rows"]), words))
    return rows
