"""Packages that only some tables need, imported when they are."""

from __future__ import annotations

from functools import partial

from priornet._lazy import need_for
from priornet_paper.uci.data.registry import UciError

__all__ = ["need"]

need = partial(need_for, extra="uci", error=UciError)
