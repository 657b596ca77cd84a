"""A *recipe* is a method with its settings, under the name that it has in the results.

Variants of a method (another temperature, another weight of the out-of-domain images) are recipes
of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from priornet_paper.depth.config import METHODS, Config

__all__ = ["Recipe", "recipes"]


@dataclass(frozen=True)
class Recipe:
    """A method with its settings, under the name it has in the results."""

    name: str
    method: str
    config: Config

    @property
    def is_variant(self) -> bool:
        """Whether it stands beside the method's own recipe."""
        return self.name != self.method


def recipes(config: Config, names: Sequence[str], ablation: bool = False) -> list[Recipe]:
    """The recipes of some methods, in the order of :data:`METHODS`.

    Args:
        config: Settings.
        names: Methods, or variants: ``EnD2-T10`` (annealed), ``EnD2-proxy``, ``NWPN-g0.05``.
        ablation: Also NWPN with each of ``config.gammas``.

    Example:
        >>> [r.name for r in recipes(Config(), ["EnD2", "Single", "EnD2-T10"])]
        ['Single', 'EnD2', 'EnD2-T10']
    """
    wanted = list(dict.fromkeys(names))
    if ablation and "NWPN" in wanted:
        wanted += [f"NWPN-g{g:g}" for g in config.gammas if g != config.gamma]
    found = [_recipe(config, name) for name in dict.fromkeys(wanted)]
    return sorted(found, key=lambda recipe: METHODS.index(recipe.method))


def _recipe(config: Config, name: str) -> Recipe:
    if name in METHODS:
        return Recipe(name, name, config)
    if name == "EnD2-proxy":
        return Recipe(name, "EnD2", replace(config, proxy=True))
    method, _, warmth = name.partition("-T")
    if method == "EnD2" and _is_number(warmth):
        return Recipe(name, method, replace(config, temperature=float(warmth), proxy=False))
    method, _, gamma = name.partition("-g")
    if method == "NWPN" and _is_number(gamma):
        seeds = config.seeds[: config.gamma_seeds]
        return Recipe(name, method, replace(config, gamma=float(gamma), seeds=seeds))
    raise ValueError(
        f'unknown method "{name}"; choose from: {", ".join(METHODS)}, EnD2-T1, EnD2-proxy, '
        "NWPN-g0.05."
    )


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
