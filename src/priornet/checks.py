"""Checks of what callers pass: shapes, kinds, values, targets and masks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
    "check_finite",
    "check_greater",
    "check_mask",
    "check_not_negative",
    "check_parameters",
    "check_same_kind",
    "check_setting",
    "check_shape",
    "check_tril",
    "check_values",
    "check_weight",
    "checked_target",
    "common_tensors",
    "hidden",
    "is_fusing",
    "lifted",
    "masked",
    "prepare_target",
    "target_mean",
    "values_visible",
    "wants_check",
]

_HALF = (torch.bfloat16, torch.float16)
_FULL = (torch.float32, torch.float64)


def common_tensors(**named: Tensor | float) -> list[Tensor]:
    """Convert arguments to one floating dtype and device; half precision becomes float32.

    Plain numbers follow the tensors. Tensors that disagree are refused, not converted: a silent
    float64 loses speed, a silent float32 loses digits.
    """
    tensors = {name: lifted(v) for name, v in named.items() if isinstance(v, Tensor)}
    for name, value in named.items():
        if name not in tensors and not isinstance(value, (int, float)):
            raise TypeError(f"`{name}` must be a tensor or a number; got {type(value).__name__}.")
    if not tensors:
        listing = ", ".join(f"`{name}`" for name in named)
        raise TypeError(f"at least one of {listing} must be a tensor.")
    first_name, first = next(iter(tensors.items()))
    for name, value in tensors.items():
        if value.dtype not in _FULL:
            raise TypeError(f"`{name}` must hold floating-point numbers; got {value.dtype}.")
        check_same_kind(name, value, first_name, first)
    if len(tensors) == len(named):
        return list(tensors.values())
    return [tensors[n] if n in tensors else first.new_tensor(v) for n, v in named.items()]


def lifted(value: Tensor) -> Tensor:
    """Convert half precision to float32; keep anything else."""
    return value.float() if value.dtype in _HALF else value


def check_same_kind(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Check that two tensors share dtype and device; the error says which of the two differs."""
    if value.dtype == other.dtype and value.device == other.device:
        return
    other_name = other_name if " " in other_name else f"`{other_name}`"
    if value.dtype != other.dtype:
        raise TypeError(
            f"`{name}` is {value.dtype} but {other_name} is {other.dtype}; convert one of them."
        )
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


def values_visible(*tensors: Tensor) -> bool:
    """Check that numbers can be read now: not under compile, vmap or grad transforms."""
    in_forward_mode = forward_ad._current_level >= 0  # pyright: ignore[reportPrivateUsage] (no public way)
    if torch.compiler.is_compiling() or in_forward_mode:
        return False
    return not any(_is_transformed(t) or _is_batched(t) for t in tensors)


def wants_check(validate_args: bool | None, *parameters: Tensor) -> bool:
    """Decide on a look at parameter values: as torch does by default, where they can be read."""
    wanted = Distribution._validate_args if validate_args is None else validate_args  # pyright: ignore[reportPrivateUsage]
    return bool(wanted) and values_visible(*parameters)


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


Named = Mapping[str, Tensor | float]


def check_parameters(
    validate_args: bool | None,
    *,
    vectors: Named | None = None,
    trils: Named | None = None,
    numbers: Named | None = None,
    of_wishart: bool = False,
) -> list[Tensor]:
    """Check the parameters of a distribution; convert them to tensors of one dtype and device.

    Locations must be finite, factors lower triangular with a positive diagonal, others above a
    bound.

    Args:
        validate_args: Look at values, where they can be read; torch's default when None.
        vectors: By name, ``(*batch, K)``.
        trils: Cholesky factors, ``(*batch, K, K)``.
        numbers: ``(*batch,)``.
        of_wishart: ``df`` belong to a Wishart, and must exceed K - 1 instead of 0.

    Returns:
        Tensors in the order of vectors, factors and numbers, not broadcast.
    """
    given = {**(vectors or {}), **(trils or {}), **(numbers or {})}
    axes = [1] * len(vectors or ()) + [2] * len(trils or ()) + [0] * len(numbers or ())
    tensors = common_tensors(**given)
    named = dict(zip(given, tensors, strict=True))
    _check_dimension(named, axes)
    batches = [v.shape[: v.dim() - n] for v, n in zip(tensors, axes, strict=True)]
    if not all(batch == batches[0] for batch in batches):
        broadcast_batch(**dict(zip(named, batches, strict=True)))
    if wants_check(validate_args, *tensors):
        _check_parameter_values(named, of_wishart)
    return tensors


def _check_parameter_values(named: Mapping[str, Tensor], of_wishart: bool) -> None:
    """Check each parameter by its name: a location, a factor, or a number above its bound."""
    lowest = {"excess": (-2.0, "-2, which is df = K - 1, so that it is proper")}
    if of_wishart:
        bound = next(iter(named.values())).shape[-1] - 1
        lowest["df"] = bound, f"K - 1 = {bound} so that the distribution is proper"
    for name, value in named.items():
        if name in ("loc", "means"):
            check_finite(name, value)
        elif name.endswith("_tril"):
            check_tril(name, value)
        else:
            check_greater(name, value, *lowest.get(name, (0.0, "")))


def _check_dimension(named: Mapping[str, Tensor], axes: Sequence[int]) -> None:
    """Check that vectors and matrices have one dimension K, that of the first."""
    (first_name, first), *_ = named.items()
    k_dim = first.shape[-1] if first.dim() else 0
    for (name, value), n in zip(named.items(), axes, strict=True):
        shape = value.shape
        if not n or (len(shape) >= n and shape[-1] == k_dim >= 1 and shape[-n] == k_dim):
            continue
        if value is first:
            event = "K" if n == 1 else "K, K"
            raise ValueError(
                f"`{name}` must have shape (*batch, {event}) with K >= 1; got {tuple(shape)}."
            )
        event = f"{k_dim}" if n == 1 else f"{k_dim}, {k_dim}"
        raise ValueError(
            f"`{name}` must have shape (*batch, {event}) to go with `{first_name}` "
            f"{tuple(first.shape)}; got {tuple(shape)}."
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


def target_mean(distribution: Distribution) -> Tensor:
    """Return the mean of a distribution over targets; refuse one over Gaussians."""
    if not isinstance(distribution.mean, Tensor):
        raise TypeError(
            f"`distribution` must be over targets; got {type(distribution).__name__}, which is "
            "over Gaussians: pass its `.predictive()`."
        )
    return distribution.mean


def checked_target(
    distribution: Distribution, y: Tensor, like: Tensor, name: str = "the distribution"
) -> Tensor:
    """Check a target's kind and shape against its distribution; lift it from half precision."""
    if not isinstance(y, Tensor):
        raise TypeError(f"`y` must be a tensor; got {type(y).__name__}.")
    y = lifted(y)
    check_same_kind("y", y, name, like)
    expected = (*distribution.batch_shape, *distribution.event_shape)
    if tuple(y.shape) != expected:
        batch, event, hint = tuple(distribution.batch_shape), tuple(distribution.event_shape), ""
        if tuple(y.shape) == batch and event == (1,):
            hint = " One-dimensional targets keep their last axis: pass `y.unsqueeze(-1)`."
        raise ValueError(
            f"`y` must have shape {expected} (batch {batch}, target {event}); got "
            f"{tuple(y.shape)}.{hint}"
        )
    return y


def prepare_target(
    distribution: Distribution, like: Tensor, y: Tensor, mask: Tensor | None
) -> Tensor:
    """Check a target against its prediction; hide masked entries so that no nan can leak.

    Values are looked at only on the CPU and outside of transforms: on an accelerator it would force
    a synchronisation in every step.
    """
    y = checked_target(distribution, y, like, "the prediction")
    check_mask(mask, distribution.batch_shape)
    if mask is not None:
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
    """Replace masked parameters of a teacher, which may be nan there, by harmless numbers.

    Masking the loss alone is not enough: the gradient of what was masked would be 0 times nan.
    """
    if mask is None:
        return parameters
    shown: dict[str, Tensor] = {}
    for name, value in parameters.items():
        neutral = value.new_tensor(1.0 if name in ("belief", "excess") else 0.0)
        if name == "precision_tril":
            neutral = torch.eye(value.shape[-1], dtype=value.dtype, device=value.device)
        counts = mask.reshape(mask.shape + (1,) * (value.dim() - mask.dim()))
        shown[name] = torch.where(counts, value, neutral)
    return shown


def masked(loss: Tensor, mask: Tensor | None) -> Tensor:
    """Set a loss to zero where masked, with zero gradient wherever it is finite there."""
    if mask is None:
        return loss
    return torch.where(mask, loss, torch.zeros_like(loss))
