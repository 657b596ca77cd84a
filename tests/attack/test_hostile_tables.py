"""A small part of the attack on damaged files; and the attack finds what it looks for."""

from __future__ import annotations

import numpy as np

from attack.hostile_tables import ATTACKS
from attack.trial import broken
from priornet.tables.formats import CsvBlocks

(ATTACK,) = ATTACKS


def test_every_row_is_read_or_the_file_refused(tmp_path):
    counts = ATTACK.run(0, 80, tmp_path)
    assert counts["read"] + counts["refused"] == counts["tries"] == 80
    assert counts["read"] > 10
    assert broken(ATTACK, counts) == {}


def test_quotes_that_swallow_rows_are_found(tmp_path, monkeypatch):
    def even(self, data):
        quotes = np.flatnonzero(data == ord('"'))
        return quotes[0 : len(quotes) // 2 * 2 : 2], quotes[1::2]

    monkeypatch.setattr(CsvBlocks, "_quoted", even)
    monkeypatch.setattr(CsvBlocks, "_check_lines", lambda *_: None)
    assert broken(ATTACK, ATTACK.run(0, 40, tmp_path)).keys() & {"rows_vanished"}
