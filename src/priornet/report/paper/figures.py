"""Figures of the page: shown where the files are, by their path beside the page."""

from __future__ import annotations

from pathlib import Path

__all__ = ["figures"]

_CAPTIONS = {
    "synthetic-panels": "Training data, and the total, data and knowledge uncertainty of each "
    "method. Training inputs lie in the shaded region.",
    "behaviours": "What a Normal-Wishart can say: low, data and knowledge uncertainty. Above "
    "Gaussians drawn from it, below its density over mean and precision.",
    "rejection": "Error that is left when the most uncertain rows are rejected first, between "
    "chance and an oracle. The coloured share of the area between these two is the PRR.",
}


def figures(folder: Path | None, *names: str) -> list[str]:
    """Lines that show the figures of these names, as far as their PNG files are there."""
    if folder is None:
        return []
    lines: list[str] = []
    for name in names:
        if (folder / f"{name}.png").exists():
            caption = _CAPTIONS[name]
            lines += ["", f"![{caption}]({folder.name}/{name}.png)", "", f"*{caption}*", ""]
    return lines
