"""``priornet reproduce page``: the page of results, made from results files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from priornet.cli import (
    PAGE,
    InputError,
    Overwrite,
    blamed_on,
    check_outputs,
    figure_paths,
    print_lines,
)
from priornet_paper.page import drawn_figures, write_page


def page(
    results: Annotated[Path, typer.Option(help="Folder with the results files.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="The Markdown file to write.")] = Path(
        "docs/results.md"
    ),
    notes: Annotated[
        Path, typer.Option(help="JSON file with explanations of misses, by key.")
    ] = Path("docs/results-notes.json"),
    overwrite: Overwrite = False,
) -> None:
    """Write the page of results: our numbers beside the paper's, and a verdict on each claim.

    Everything comes from the files in the results folder; missing runs
    are called "not run". Curves and charts are drawn into the folder "images"
    beside the page; it shows the other figures that are there, such as those
    of `reproduce depth-maps`.
    """
    if not results.is_dir():
        raise InputError(f"{results}: no such folder; `--results` names the folder of results.")
    written = [(out, PAGE), *figure_paths(out.parent / "images", *drawn_figures())]
    check_outputs(written, [notes], overwrite=overwrite)
    with blamed_on(results):
        used = write_page(results, out, notes)
    print_lines([f"Page: {out}"])
    if used.unused:
        typer.echo(
            f"{notes}: explains goals that are not missed: {', '.join(used.unused)}", err=True
        )
