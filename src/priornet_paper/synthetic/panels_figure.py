"""The paper's figure of the synthetic experiment, drawn from its results alone."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from priornet.report import TEXT, curves

_VARIANTS = {"NWPN-precision": ("NWPN", "NWPN, paper's prior")}  # a method's colour, and a label


def draw_panels(results: dict[str, Any]) -> Figure:
    """Draw four panels: the data, and each method's three uncertainties.

    Args:
        results: Results of :func:`priornet_paper.synthetic.run.run`.
    """
    known = {name: pair for name, pair in _VARIANTS.items() if name in results["curves"]}
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flatten()
    curves.plot_data(results, ax=panels[0])
    panels[0].set_ylabel("target $y$", color=TEXT)
    variants = {name: method for name, (method, _) in known.items()}
    for ax, part in zip(panels[1:], curves.PARTS, strict=True):
        curves.plot_uncertainty(results, part, variants=variants, ax=ax)
        ax.set_ylabel("standard deviation", color=TEXT)
    for ax, letter in zip(panels, "abcd", strict=True):
        ax.set_title(f"({letter}) {ax.get_title()}", color=TEXT, fontsize=12, fontweight="bold")
    for ax in panels[2:]:
        ax.set_xlabel("input $x$", color=TEXT)
    curves.add_key(figure, results, variants={label: method for method, label in known.values()})
    return figure
