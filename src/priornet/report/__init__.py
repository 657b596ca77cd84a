"""Figures: results in, Matplotlib axes out. Nothing here shows a window or keeps global state."""

from priornet.report import synthetic

__all__ = ["synthetic"]
