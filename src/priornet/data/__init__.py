"""Data sets, as tensors in their original units."""

from priornet.data import synthetic

__all__ = ["synthetic"]
