"""Students for the examples of docstrings and pages: they show what to type."""

from __future__ import annotations

import pytest

from priornet import DistilledRegressor


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Students learn for seconds where an example leaves their epochs to the library."""
    defaults = DistilledRegressor.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "student_epochs", 300)
