"""Cases with every K and batch shape, as pytest parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from _beliefs import BATCHES, DIMENSIONS
from _contract.tensors import Shape


def _label(case: Any, k_dim: int, batch: Shape) -> str:
    return f"{case.name}-K{k_dim}-{'x'.join(map(str, batch))}"


def settings(
    cases: list[Any], dimensions: Shape = DIMENSIONS, batches: tuple[Shape, ...] = BATCHES
) -> list[Any]:
    """Every (case, K, batch) as pytest parameters."""
    import pytest

    return [
        pytest.param(case, k_dim, batch, id=_label(case, k_dim, batch))
        for case in cases
        for k_dim in dimensions
        if k_dim in case.dimensions
        for batch in batches
    ]


def spread(cases: list[Any]) -> list[Any]:
    """Every (case, K) with one batch shape, the next one each time, so that all are met with all.

    For slow tests of what other tests cover by ``settings``: the K of a case go different ways
    through the algebra, and its batch shapes the same way.
    """
    import pytest

    turns = [
        (case, k_dim, BATCHES[(place + turn) % len(BATCHES)])
        for place, case in enumerate(cases)
        for turn, k_dim in enumerate(DIMENSIONS)
        if k_dim in case.dimensions
    ]
    return [pytest.param(*setting, id=_label(*setting)) for setting in turns]


def every(parameters: list[Any]) -> Callable[[Callable[..., None]], Any]:
    """Run a test once for each case, which meets its every K and batch shape in turn.

    A pytest case for each would cost more than the test. The traceback ends with the K and batch
    shape that failed.

    Args:
        parameters: From ``settings`` or ``spread``.
    """
    import pytest

    by_case: dict[str, list[Any]] = {}
    for parameter in parameters:
        by_case.setdefault(parameter.values[0].name, []).append(parameter)

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def run(case: list[Any], **fixtures: Any) -> None:
            for parameter in case:
                one, k_dim, batch = parameter.values
                with _named(parameter.id):
                    test(case=one, k_dim=k_dim, batch=batch, **fixtures)

        _forget(run, test, "k_dim", "batch")
        return pytest.mark.parametrize("case", by_case.values(), ids=by_case)(run)

    return decorate


def each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """Give a test the values of an argument in turn, in one pytest case.

    Args:
        name: The argument.
        values: Its values.
    """

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for value in values:
                with _named(f"{name} = {value!r}"):
                    test(**fixtures, **{name: value})

        _forget(run, test, name)
        return run

    return decorate


@contextmanager
def _named(setting: str) -> Iterator[None]:
    """Name the setting at the end of a failure's traceback."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in {setting}")
        raise


def _forget(run: Any, test: Callable[..., None], *names: str) -> None:
    """Hide arguments from pytest, which would look for fixtures."""
    signature = inspect.signature(test)
    left = [p for name, p in signature.parameters.items() if name not in names]
    run.__signature__ = signature.replace(parameters=left)
