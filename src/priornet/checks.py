"""Checks at the border: one clear sentence each, naming the argument, what was expected, what came.

Shapes, dtypes and devices are always checked: that costs nothing. Values (finite, positive) are
checked only where looking is possible: not while ``torch.compile`` traces or ``torch.func``
transforms are active, where a tensor has no single value to look at.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Size, Tensor
from torch._C._functorch import is_functorch_wrapped_tensor as _is_transformed  # pyright: ignore

__all__ = [
    "broadcast_batch",
    "check_batch",
    "check_greater",
    "check_mask",
    "check_same_kind",
    "check_shape",
    "check_values",
    "common_tensors",
    "values_visible",
]

_HALF = (torch.bfloat16, torch.float16)
_FULL = (torch.float32, torch.float64)


def common_tensors(**named: Tensor | float) -> list[Tensor]:
    """Bring arguments to one floating dtype and device; half precision becomes float32.

    Plain numbers follow the tensors. Tensors that disagree are refused, not converted: a silent
    float64 loses speed, a silent float32 loses digits.
    """
    tensors: dict[str, Tensor] = {}
    for name, value in named.items():
        if isinstance(value, Tensor):
            if value.dtype in _HALF:
                value = value.float()
            if value.dtype not in _FULL:
                raise TypeError(f"`{name}` must hold floating-point numbers; got {value.dtype}.")
            tensors[name] = value
        elif not isinstance(value, (int, float)):
            raise TypeError(f"`{name}` must be a tensor or a number; got {type(value).__name__}.")
    if not tensors:
        raise TypeError(f"at least one of {_listing(named)} must be a tensor.")
    first_name, first = next(iter(tensors.items()))
    for name, value in tensors.items():
        check_same_kind(name, value, first_name, first)
    return [
        tensors[name] if name in tensors else first.new_tensor(value)
        for name, value in named.items()
    ]


def _listing(names: Sequence[str] | dict[str, Tensor | float]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def check_same_kind(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Same dtype and device, or an error that says which of the two disagree."""
    if value.dtype != other.dtype:
        raise TypeError(
            f"`{name}` is {value.dtype} but `{other_name}` is {other.dtype}; convert one of them."
        )
    if value.device != other.device:
        raise ValueError(
            f"`{name}` is on {value.device} but `{other_name}` is on {other.device}; "
            "move one of them with `.to(...)`."
        )


def check_shape(name: str, value: Tensor, expected: Sequence[int], hint: str = "") -> None:
    """Exactly this shape."""
    if tuple(value.shape) != tuple(expected):
        raise ValueError(
            f"`{name}` must have shape {tuple(expected)}; got {tuple(value.shape)}.{hint}"
        )


def broadcast_batch(**shapes: Size) -> Size:
    """The common batch shape; refused when it is nobody's own.

    Broadcasting may stretch an argument to a shape that another one has. It may not invent one:
    ``(B,)`` against ``(B, 1)`` would silently become ``(B, B)``.
    """
    try:
        common = torch.broadcast_shapes(*shapes.values())
    except RuntimeError:
        common = None
    if common is None or common not in shapes.values():
        listing = ", ".join(f"`{name}` {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(
            f"batch shapes do not fit together: {listing}; "
            "give them one shape, or expand them yourself if you want their outer product."
        )
    return common


def check_batch(name: str, value: Tensor, batch: Size, event: Sequence[int]) -> None:
    """A target for a loss: exactly one event per batch element."""
    expected = (*batch, *event)
    if tuple(value.shape) != expected:
        hint = ""
        if tuple(value.shape) == tuple(batch) and tuple(event) == (1,):
            hint = f" One-dimensional targets keep their last axis: pass `{name}.unsqueeze(-1)`."
        raise ValueError(
            f"`{name}` must have shape {expected} (batch {tuple(batch)}, target "
            f"{tuple(event)}); got {tuple(value.shape)}.{hint}"
        )


def values_visible(*tensors: Tensor) -> bool:
    """Whether the numbers can be looked at now (not under compile, vmap or grad transforms)."""
    if torch.compiler.is_compiling():
        return False
    return not any(_is_transformed(t) for t in tensors)


def check_values(name: str, value: Tensor, valid: Tensor, expected: str) -> None:
    """Raise unless every element of ``valid`` is true; say how many are not, and show one."""
    if bool(valid.all()):
        return
    bad = value[~valid] if valid.shape == value.shape else value
    shown = f"; first offending value {bad.flatten()[0].item():g}" if bad.numel() else ""
    count = int((~valid).sum())
    raise ValueError(f"`{name}` must be {expected}; {count} of {valid.numel()} are not{shown}.")


def check_greater(name: str, value: Tensor, bound: float, why: str = "") -> None:
    """Finite and above a bound."""
    if bool(((value > bound) & torch.isfinite(value)).all()):
        return
    if bool(torch.isnan(value).any()):
        raise ValueError(f"`{name}` contains nan.")
    if bool(torch.isinf(value).any()):
        raise ValueError(f"`{name}` must be finite; it contains inf.")
    raise ValueError(
        f"`{name}` must exceed {bound:g}{why}; smallest value given is {value.min().item():g}."
    )


def check_mask(mask: Tensor, batch: Size) -> None:
    """A boolean mask of the batch shape, true where the target counts."""
    if mask.dtype != torch.bool:
        raise TypeError(f"`mask` must be boolean, true where the target counts; got {mask.dtype}.")
    check_shape("mask", mask, batch)
