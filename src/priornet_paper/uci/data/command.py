"""``priornet datasets``: which of the paper's tables are here, and how to get the others."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from priornet.cli import AsJson, print_lines

datasets = typer.Typer(help="List the paper's tables, or get them.", invoke_without_command=True)


@datasets.callback()
def list_datasets(context: typer.Context, as_json: AsJson = False) -> None:
    """List the paper's tables and where they are; `get` downloads and checks them."""
    if context.invoked_subcommand is not None:
        return
    entries = _entries()
    if as_json:
        typer.echo(json.dumps(entries))
        return
    _print_table(entries)


@datasets.command()
def get(
    names: Annotated[list[str], typer.Argument(help="Tables, as `priornet datasets` names them.")],
    as_json: AsJson = False,
) -> None:
    """Check tables, after downloading those that are not here into the user's cache."""
    from priornet_paper.uci.data.registry import dataset
    from priornet_paper.uci.data.tables import get_uci

    for name in names:  # a mistyped name is refused before anything is downloaded
        dataset(name)
    entries: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        table, was_downloaded = get_uci(name)
        n_rows, n_features = table.inputs.shape
        entries.append(
            {
                "name": name,
                "path": str(table.path),
                "was_downloaded": was_downloaded,
                "n_rows": n_rows,
                "n_features": n_features,
            }
        )
        if not as_json:
            how = "downloaded to" if was_downloaded else "found in"
            print_lines([f"{name}: {n_rows} x {n_features}, {how} {table.path}"])
    if as_json:
        typer.echo(json.dumps(entries))


def _entries() -> list[dict[str, Any]]:
    """Describe each table without opening it: its file may still be refused when it is read."""
    from priornet_paper.uci.data.registry import DATASETS
    from priornet_paper.uci.data.tables import find_first_rows, find_table

    entries: list[dict[str, Any]] = []
    for name, known in DATASETS.items():
        whole, part = find_table(known), find_first_rows(known)
        path = whole or part
        entries.append(
            {
                "name": name,
                "title": known.title,
                "n_rows": known.n_rows,
                "n_features": known.n_features,
                "target": known.target,
                "path": None if path is None else str(path),
                "first_rows_only": known.first_rows if path and not whole else None,
                "licence": known.licence,
                "source": known.source,
                "url": known.url,
            }
        )
    return entries


def _print_table(entries: list[dict[str, Any]]) -> None:
    """Print lines rather than a table, whose columns would break the paths."""
    rows = [("name", "rows x features", "target", "licence", "where")]
    for entry in entries:
        size = f"{entry['n_rows']} x {entry['n_features']}"
        where = entry["path"] or "not here"
        if entry["first_rows_only"]:
            where += f" (first {entry['first_rows_only']} rows only)"
        rows.append((entry["name"], size, entry["target"], entry["licence"], where))
    widths = [max(len(row[column]) for row in rows) for column in range(4)] + [0]
    print_lines(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    if any(entry["path"] is None or entry["first_rows_only"] for entry in entries):
        print_lines(["", "`priornet datasets get NAME` downloads a table and checks it."])
