"""Inputs that do not belong to a table's domain, to see whether a model notices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from priornet_paper.uci.data.loading import load_uci
from priornet_paper.uci.data.registry import UciError, dataset

__all__ = ["foreign_inputs", "foreign_to"]


def foreign_to(name: str) -> str:
    """The table whose inputs are foreign to the one named: naval, and CT slices for msd."""
    if dataset(name).name == "naval":
        raise UciError("naval: it is the table that is foreign to the others, not to itself.")
    return "ct_slices" if name == "msd" else "naval"


def foreign_inputs(name: str, n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Out-of-domain inputs for a table, to be fed as standardised inputs.

    Constant columns of the foreign table's features are dropped; of the others the first
    ``n_columns``, in the first ``n_rows`` rows, are standardised by the mean and the deviation of
    that block. Raw columns would lie trivially far away. A column that is constant within the block
    only becomes zero.

    Args:
        name: The in-domain table.
        n_rows: How many inputs: as many as there are test rows.
        n_columns: How many features the model reads.

    Returns:
        Shape ``(n_rows, n_columns)``.

    Raises:
        ValueError: More rows or columns than the foreign table has.
    """
    table = load_uci(foreign_to(name))
    varying = table.inputs[:, np.ptp(table.inputs, axis=0) > 0]
    for what, wanted, there in (
        ("n_rows", n_rows, len(varying)),
        ("n_columns", n_columns, varying.shape[1]),
    ):
        if not 1 <= wanted <= there:
            kind = "rows" if what == "n_rows" else "columns that vary"
            raise ValueError(
                f"`{what}` must lie between 1 and {there}, the {kind} of {table.name} here; "
                f"got {wanted}."
            )
    block = varying[:n_rows, :n_columns]
    centred = block - block.mean(axis=0)
    deviation = block.std(axis=0)
    # A constant block's deviation is rounding at most, never a scale.
    is_constant = np.ptp(block, axis=0) == 0
    return np.where(is_constant, 0.0, centred / np.where(is_constant, 1.0, deviation))
