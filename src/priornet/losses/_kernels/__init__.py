"""Losses of one-dimensional targets whose value and gradient come out of one pass."""

__all__: list[str] = []
