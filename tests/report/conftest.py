"""Fixtures of the reports' tests."""

from _reports import browser, ensemble, evaluation, make_table, open_page, rows, single, two_targets

__all__ = [
    "browser",
    "ensemble",
    "evaluation",
    "make_table",
    "open_page",
    "rows",
    "single",
    "two_targets",
]
