"""Names and colours of the methods, the same in every figure and safe for the colour-blind."""

from __future__ import annotations

__all__ = ["COLOURS", "LABELS", "TRUTH"]

# Okabe and Ito's palette, by the methods' names in results.
COLOURS = {
    "ENSM": "#0072B2",
    "EnD2": "#D55E00",
    "NWPN": "#009E73",
    "Single": "#56B4E9",
    "EnD": "#E69F00",
    "MD-EnD": "#CC79A7",
    "DER": "#8C6D1F",
    "DD": "#777777",
}
LABELS = {"ENSM": "Ensemble", "EnD2": "EnD²"}
TRUTH = "black"
