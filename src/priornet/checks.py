"""Checks of what callers pass: shapes, kinds, values, targets and masks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Size, Tensor

# The only way to ask; torch's own Python code imports it from here.
from torch._C._functorch import (  # pyright: ignore[reportMissingImports, reportPrivateUsage]
    is_functorch_wrapped_tensor as _is_transformed,
)
from torch._C._functorch import (  # pyright: ignore[reportMissingImports, reportPrivateUsage]
    is_legacy_batchedtensor as _is_batched,  # of several gradients at once
)
from torch.autograd import forward_ad
from torch.distributions import Distribution

__all__ = [
    "broadcast_batch",
    "check_batch",
    "check_finite",
    "check_greater",
    "check_mask",
    "check_matrix_shapes",
    "check_not_negative",
    "check_same_kind",
    "check_setting",
    "check_shape",
    "check_tril",
    "check_values",
    "check_vector_shapes",
    "check_weight",
    "common_tensors",
    "hidden",
    "is_fusing",
    "lifted",
    "masked",
    "prepare_target",
    "values_visible",
]


_HALF = (torch.bfloat16, torch.float16)
_FULL = (torch.float32, torch.float64)


def common_tensors(**named: Tensor | float) -> list[Tensor]:
    """Convert arguments to one floating dtype and device; half precision becomes float32.

    Plain numbers follow the tensors. Tensors that disagree are refused, not converted: a silent
    float64 loses speed, a silent float32 loses digits.
    """
    tensors: dict[str, Tensor] = {}
    for name, value in named.items():
        if isinstance(value, Tensor):
            value = lifted(value)
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


def lifted(value: Tensor) -> Tensor:
    """Convert half precision to float32; keep anything else."""
    return value.float() if value.dtype in _HALF else value


def _listing(names: Sequence[str] | dict[str, Tensor | float]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def check_same_kind(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Check that two tensors share dtype and device; the error says which of the two differs."""
    other_name = other_name if " " in other_name else f"`{other_name}`"
    if value.dtype != other.dtype:
        raise TypeError(
            f"`{name}` is {value.dtype} but {other_name} is {other.dtype}; convert one of them."
        )
    if value.device != other.device:
        raise ValueError(
            f"`{name}` is on {value.device} but {other_name} is on {other.device}; "
            "move one of them with `.to(...)`."
        )


def check_shape(name: str, value: Tensor, expected: Sequence[int], hint: str = "") -> None:
    """Check for exactly this shape."""
    if tuple(value.shape) != tuple(expected):
        raise ValueError(
            f"`{name}` must have shape {tuple(expected)}; got {tuple(value.shape)}.{hint}"
        )


def broadcast_batch(**shapes: Size) -> Size:
    """Return the common batch shape; refuse one that none of the arguments has.

    Broadcasting may stretch an argument to a shape that another one has. It may not invent one:
    ``(B,)`` against ``(B, 1)`` would silently become ``(B, B)``.
    """
    first, *others = shapes.values()
    if all(shape == first for shape in others):  # torch's own rule takes 40 us to see this
        return first
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
    """Check a target of a loss: exactly one event per batch element."""
    expected = (*batch, *event)
    if tuple(value.shape) != expected:
        hint = ""
        if tuple(value.shape) == tuple(batch) and tuple(event) == (1,):
            hint = f" One-dimensional targets keep their last axis: pass `{name}.unsqueeze(-1)`."
        raise ValueError(
            f"`{name}` must have shape {expected} (batch {tuple(batch)}, target "
            f"{tuple(event)}); got {tuple(value.shape)}.{hint}"
        )


def _in_forward_mode() -> bool:
    return forward_ad._current_level >= 0  # pyright: ignore[reportPrivateUsage] (no public way)


def values_visible(*tensors: Tensor) -> bool:
    """Check that numbers can be read now: not under compile, vmap or grad transforms."""
    if torch.compiler.is_compiling() or _in_forward_mode():
        return False
    return not any(_is_transformed(t) or _is_batched(t) for t in tensors)


# torch 2.11 calls every trace an export. (2.9 is less than 2.13: these compare as versions.)
_KNOWS_EXPORTS = torch.__version__ >= "2.13"


def is_fusing() -> bool:
    """Tell if a compiler will fuse what follows; False while a network is exported.

    A program that reads an exported file knows convolutions, but not this package's kernels.
    """
    is_exported = _KNOWS_EXPORTS and torch.compiler.is_exporting()
    return torch.compiler.is_dynamo_compiling() and not is_exported


def check_values(name: str, value: Tensor, valid: Tensor, expected: str) -> None:
    """Raise unless every element of ``valid`` is true; say how many are not, and show one."""
    if bool(valid.all()):
        return
    count, shown = int((~valid).sum()), ""
    if valid.shape == value.shape:
        shown = f"; the first such value is {value[~valid].flatten()[0].item():g}"
    raise ValueError(f"`{name}` must be {expected}; {count} of {valid.numel()} are not{shown}.")


def check_finite(name: str, value: Tensor) -> None:
    """Refuse nan and inf."""
    if bool(torch.isfinite(value).all()):
        return
    found = "nan" if bool(torch.isnan(value).any()) else "inf"
    raise ValueError(f"`{name}` must be finite; it contains {found}.")


def check_greater(name: str, value: Tensor, bound: float, says: str = "") -> None:
    """Check that values are finite and above a bound; ``says`` explains the bound."""
    check_finite(name, value)
    if not bool((value > bound).all()):
        raise ValueError(
            f"`{name}` must exceed {says or f'{bound:g}'}; smallest value given is "
            f"{value.min().item():g}."
        )


def check_setting(name: str, value: Tensor, batch: Size, like: Tensor) -> None:
    """Check a setting per network or element: one number, or 1 or full size on each batch axis.

    Missing axes are refused: ``(S,)`` for ``(S, B)`` would mean the rows as soon as S equals B.
    """
    check_same_kind(name, value, "the prediction", like)
    fits = all(size in (1, full) for size, full in zip(value.shape, batch, strict=False))
    if value.dim() not in (0, len(batch)) or not fits:
        raise ValueError(
            f"`{name}` must be a number or have one axis per axis of the batch {tuple(batch)}, of "
            f"that size or of size 1; got {tuple(value.shape)}."
        )


def check_not_negative(name: str, value: float) -> None:
    """Check for a finite plain number, zero or more."""
    if isinstance(value, Tensor):
        raise TypeError(f"`{name}` must be a plain number; got a tensor.")
    if value < 0 or not math.isfinite(value):
        raise ValueError(f"`{name}` must not be negative, nan or inf; got {value:g}.")


def check_tril(name: str, tril: Tensor) -> None:
    """Check for a finite lower-triangular matrix with a positive diagonal."""
    check_finite(name, tril)
    above = tril.triu(1)
    if bool((above != 0).any()):
        wrong = above[above != 0]
        raise ValueError(
            f"`{name}` must be lower triangular; {wrong.numel()} entries above the diagonal are "
            f"not 0, the first is {wrong[0].item():g}."
        )
    diagonal = tril.diagonal(dim1=-2, dim2=-1)
    check_values(name, diagonal, diagonal > 0, "positive on the diagonal")


def check_vector_shapes(loc_name: str, loc: Tensor, name: str, vector: Tensor) -> None:
    """Check the shapes of two vectors ``(*batch, K)``."""
    if loc.dim() < 1 or loc.shape[-1] < 1:
        raise ValueError(
            f"`{loc_name}` must have shape (*batch, K) with K >= 1; got {tuple(loc.shape)}."
        )
    if tuple(vector.shape[-1:]) != tuple(loc.shape[-1:]):
        raise ValueError(
            f"`{name}` must have shape (*batch, {loc.shape[-1]}), one value per coordinate, to go "
            f"with `{loc_name}` {tuple(loc.shape)}; got {tuple(vector.shape)}."
        )


def check_matrix_shapes(loc_name: str, loc: Tensor, name: str, matrix: Tensor) -> None:
    """Check the shapes of a vector ``(*batch, K)`` and a matrix ``(*batch, K, K)``."""
    if loc.dim() < 1 or loc.shape[-1] < 1:
        raise ValueError(
            f"`{loc_name}` must have shape (*batch, K) with K >= 1; got {tuple(loc.shape)}."
        )
    k_dim = loc.shape[-1]
    if tuple(matrix.shape[-2:]) != (k_dim, k_dim):
        raise ValueError(
            f"`{name}` must have shape (*batch, {k_dim}, {k_dim}) to go with `{loc_name}` "
            f"{tuple(loc.shape)}; got {tuple(matrix.shape)}."
        )


def check_mask(mask: Tensor | None, batch: Size) -> None:
    """Check for no mask, or a boolean one of the batch shape, true where the target counts."""
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise TypeError(f"`mask` must be boolean, true where the target counts; got {mask.dtype}.")
    check_shape("mask", mask, batch)


def check_weight(name: str, value: Tensor | float, batch: Size, like: Tensor) -> None:
    """Check a loss's weight, zero or more: a number, or a tensor that broadcasts with the batch.

    The values of a tensor are looked at on the CPU only, like those of targets.
    """
    if not isinstance(value, Tensor):
        check_not_negative(name, value)
        return
    check_setting(name, value, batch, like)
    if value.device.type == "cpu" and values_visible(value):
        check_values(name, value, (value >= 0) & torch.isfinite(value), "finite and not negative")


def prepare_target(
    distribution: Distribution, like: Tensor, y: Tensor, mask: Tensor | None
) -> Tensor:
    """Check a target against its prediction; hide masked entries so that no nan can leak.

    Values are looked at only on the CPU and outside of transforms: on an accelerator it would force
    a synchronisation in every step.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"`y` must be a tensor; got {type(y).__name__}.")
    y = lifted(y)
    check_same_kind("y", y, "the prediction", like)
    check_batch("y", y, distribution.batch_shape, distribution.event_shape)
    if mask is not None:
        check_mask(mask, distribution.batch_shape)
        y = torch.where(mask.unsqueeze(-1), y, torch.zeros_like(y))
    # A sum is finite only if every value is (or it overflowed): one cheap look is mostly enough.
    if y.device.type == "cpu" and values_visible(y, like) and not math.isfinite(y.sum().item()):
        finite = torch.isfinite(y)
        if not bool(finite.all()):
            count = int((~finite).sum())
            raise ValueError(
                f"`y` must be finite; {count} of {y.numel()} values are nan or inf. Pass `mask` "
                "(true where the target counts) for missing targets."
            )
    return y


def hidden(mask: Tensor | None, **parameters: Tensor) -> dict[str, Tensor]:
    """Replace masked parameters of a teacher by harmless numbers: a teacher may be nan there.

    Masking the loss alone is not enough: the gradient of what was masked would be 0 times nan.
    Factors become the identity, beliefs and excesses 1, everything else 0.
    """
    if mask is None:
        return parameters
    return {name: _hide(name, value, mask) for name, value in parameters.items()}


def _hide(name: str, value: Tensor, mask: Tensor) -> Tensor:
    mask = mask.reshape(mask.shape + (1,) * (value.dim() - mask.dim()))
    if name == "precision_tril":
        neutral = torch.eye(value.shape[-1], dtype=value.dtype, device=value.device)
    else:
        neutral = value.new_tensor(1.0 if name in ("belief", "excess") else 0.0)
    return torch.where(mask, value, neutral)


def masked(loss: Tensor, mask: Tensor | None) -> Tensor:
    """Set a loss to zero where masked, with zero gradient wherever it is finite there."""
    if mask is None:
        return loss
    return torch.where(mask, loss, torch.zeros_like(loss))
