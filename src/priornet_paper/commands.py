"""``priornet reproduce``: the paper's tables and figures, a command each."""

from __future__ import annotations

import typer

from priornet.cli import add_lazily

__all__ = ["reproduce"]

# Each command, where it is defined, and the first line of its help.
_COMMANDS = {
    "synthetic": (
        "synthetic.command:synthetic",
        "Train on the paper's synthetic curve, and draw its figure.",
    ),
    "uci": ("uci.command:uci", "Reproduce the paper's UCI tables."),
    "depth": ("depth.command:depth", "Reproduce the paper's depth tables."),
    "depth-maps": (
        "depth.command:depth_maps",
        "Draw maps of the ensemble and EnD2 for the first images of each set.",
    ),
    "behaviours": (
        "synthetic.command:behaviours",
        "Draw what a Normal-Wishart can say: low, data and knowledge uncertainty.",
    ),
    "page": (
        "page.page:page",
        "Write the page of results: our numbers beside the paper's, and a verdict on each claim.",
    ),
}

reproduce = typer.Typer(help="Run the paper's experiments again.", no_args_is_help=True)
for name, (target, line) in _COMMANDS.items():
    add_lazily(reproduce, name, f"priornet_paper.{target}", line)
