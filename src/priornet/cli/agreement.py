"""What ``priornet verify`` says of an exported file and its model, whatever their inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from priornet.cli.errors import InputError

if TYPE_CHECKING:
    from priornet.export import Comparison

__all__ = ["agreement_sentence", "check_outputs", "summarise"]


def check_outputs(path: Path, expected: Any, found: Any) -> None:
    """Refuse a file that lacks an output of its model."""
    missing = sorted(set(expected) - set(found))
    if missing:
        raise InputError(f'{path}: it has no output "{missing[0]}"; export the model again.')


def summarise(
    comparison: Comparison, place: Callable[[str, Any], dict[str, Any]]
) -> dict[str, Any]:
    """How far outputs differ, for ``--json``.

    Args:
        comparison: Of all rows or images.
        place: Says in words where an output's worst difference is, from its name and that.
    """
    from priornet.export import TOLERANCE

    def worst_of(name: str) -> dict[str, Any]:
        worst = comparison.worst[name]
        values = {"error": worst.error, "expected": worst.expected, "found": worst.found}
        return {"column": name, **place(name, worst), **values}

    return {
        "tolerance": TOLERANCE,
        "holds": comparison.holds,
        "worst": worst_of(comparison.output),
        "outputs": [worst_of(name) for name in comparison.worst],
    }


def agreement_sentence(summary: dict[str, Any], n: int, who: str, where: str) -> str:
    """The same in a sentence.

    Args:
        summary: From :func:`summarise`.
        n: How many were compared.
        who: Those, counted in words.
        where: The place of the worst difference, behind the name of its column.
    """
    worst = summary["worst"]
    says = ("agree" if summary["holds"] else "differ") + ("s" if n == 1 else "")
    return (
        f"{who} {says}: the largest relative difference is {worst['error']:.1e} (at most "
        f"{summary['tolerance']:g}), in {worst['column']}{where}: {_shown(worst['found'])} instead "
        f"of {_shown(worst['expected'])}."
    )


def _shown(value: float | str) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:.9g}"
