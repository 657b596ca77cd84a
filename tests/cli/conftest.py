"""Fixtures of the commands' tests."""

from _commands import call, closed_folder, csv, models, refused, sets, table

__all__ = ["call", "closed_folder", "csv", "models", "refused", "sets", "table"]
