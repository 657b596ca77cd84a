"""An attack, the way it is run, and the counts that it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Attack", "Counts", "broken"]

Counts = dict[str, int]


@dataclass(frozen=True)
class Attack:
    """One promise and the attack on it.

    Attributes:
        name: Short name, as in ``bit-flips-of-weights``.
        promise: The sentence that must hold, for readers of the results.
        run: Makes ``tries`` tries from a seed, in an empty folder; returns counts by name, with
            ``"tries"`` among them. The same seed gives the same tries.
        tries: How many tries the whole attack makes; ``make test`` makes a few.
        zero: Names of the counts that must be zero.
    """

    name: str
    promise: str
    run: Callable[[int, int, Path], Counts]
    tries: int
    zero: tuple[str, ...]


def broken(attack: Attack, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that should be zero and are not."""
    return {name: counts[name] for name in attack.zero if counts[name] != 0}
