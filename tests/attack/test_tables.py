"""A small part of the attack on reading; and the attack finds what it looks for."""

from __future__ import annotations

import numpy as np

from attack.tables import ATTACKS
from attack.trial import broken
from priornet.tables import raw, values

(ATTACK,) = ATTACKS


def test_every_way_of_reading_gives_the_same_matrix(tmp_path):
    counts = ATTACK.run(0, 40, tmp_path)
    assert counts["tries"] == 40
    assert broken(ATTACK, counts) == {}


def test_frames_that_pass_through_nanoseconds_are_found(tmp_path, monkeypatch):
    own = values.as_days

    def wrapped(values):
        kind = values.dtype.kind
        return own(values.astype(f"{kind}8[ns]") if np.ndim(values) else values)

    monkeypatch.setattr("priornet.tables.values.as_days", wrapped)
    assert broken(ATTACK, ATTACK.run(0, 20, tmp_path)).keys() & {"matrices_wrong"}


def test_types_that_only_some_take_are_found(tmp_path, monkeypatch):
    own = raw._from_chunks

    def partial(array, name):
        if "time" in str(array.type):
            raise ValueError("neither number nor text")
        return own(array, name)

    monkeypatch.setattr(raw, "_from_chunks", partial)
    assert broken(ATTACK, ATTACK.run(0, 20, tmp_path)).keys() & {"refused_by_some"}
