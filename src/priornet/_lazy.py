"""Imports on demand: public names of a package, and packages that an extra brings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_NAMES = {"PIL": "Pillow"}  # packages whose module has another name


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and the ``__dir__`` of a package that imports its names lazily.

    Args:
        package: The package's ``__name__``.
        homes: Each public name with the submodule that defines it, counted from the package. A
            name that equals the last part of its home is the submodule itself.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(f"{package}.{home}")
        value = module if home.rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})


def need_for(module: str, purpose: str, extra: str, error: type[Exception]) -> Any:
    """Import a module of an extra; if it is missing, raise an error that names the extra.

    Args:
        module: Its name.
        purpose: Ends the sentence "``module`` is needed to ...".
        extra: The extra of priornet that brings it.
        error: Class of the error.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        top = module.partition(".")[0]
        raise error(
            f"{_NAMES.get(top, top)} is needed to {purpose}; install it with "
            f"`pip install '.[{extra}]'` in a checkout of priornet."
        ) from missing
