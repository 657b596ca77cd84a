"""A depth network in one file: its weights, its configuration, and the units of its outputs."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from priornet.distributions.gaussian import Normal
from priornet.distributions.student_t import StudentT
from priornet.nn.dense_depth.decoder import ENCODERS, DenseDepth
from priornet.nn.heads import GaussianHead, GaussianMixtureHead, NormalWishartHead
from priornet.nn.weights import read_tensors, write_tensors
from priornet.uncertainty import uncertainty

_HEADS = {
    "gaussian": GaussianHead,
    "normal-wishart": NormalWishartHead,
    "mixture": GaussianMixtureHead,
}
# Arguments of a head that it does not keep under their own names.
_BOUNDS = {
    "min_scale": lambda head: 1 / head._inverse_scale.high,
    "max_scale": lambda head: 1 / head._inverse_scale.low,
    "min_belief": lambda head: head._belief.low,
    "min_excess": lambda head: head._excess.low,
    "max_evidence": lambda head: head._excess.high,
    "initial_belief": lambda head: head._belief.initial,
    "initial_excess": lambda head: head._excess.initial,
}
_PLAIN = "plain"
_DARKEST, _BRIGHTEST = -0.5, 1.5  # of images in [0, 1], which may overshoot where rescaled


@dataclass(frozen=True)
class SavedDepth:
    """A network with its units, as :func:`load_depth` returns it.

    Attributes:
        net: The network, in evaluation mode.
        size: Height and width of its training images.
        shift: Depth of the network's output 0.
        scale: Depth of a step of 1 in the network's output.
        name: Name in error messages: the path of its file.
    """

    net: DenseDepth
    size: tuple[int, int]
    shift: float = 0.0
    scale: float = 1.0
    name: str = "the network"

    def exact(self) -> SavedDepth:
        """Return a copy in double precision, on the CPU."""
        return replace(self, net=deepcopy(self.net).to("cpu", torch.float64))

    @torch.no_grad()
    def belief(self, images: torch.Tensor) -> Any:
        """Predict images ``(B, 3, H, W)`` in [0, 1], in units of depth and float64.

        Returns:
            A distribution per pixel; plain numbers, if the head has no uncertainty.

        Raises:
            ValueError: The images are bytes, or a number is far outside [0, 1].
        """
        if not images.is_floating_point():
            raise ValueError(
                f"`images` must be numbers in [0, 1], not {images.dtype}; divide bytes by 255."
            )
        if images.numel() and not bool(((images > _DARKEST) & (images < _BRIGHTEST)).all()):
            raise ValueError(
                "`images` must be numbers in [0, 1]: bytes divided by 255, and not normalised, "
                f"which the network does; these lie in [{images.min():g}, {images.max():g}]."
            )
        found: Any = self.net.head.distribution(
            self.net.raw(images.to(self.net.bottom.weight)).double()
        )
        if isinstance(found, torch.Tensor):
            return self.shift + self.scale * found
        return found.affine(self.shift, self.scale)


def depth_outputs(saved: SavedDepth, images: torch.Tensor, coverage: float) -> dict[str, Any]:
    """Compute by the network what its graph computes for images ``(batch, 3, H, W)``."""
    from priornet.export.interface import ExportError  # which needs scikit-learn and pandas

    belief = saved.belief(images)
    if isinstance(belief, torch.Tensor):
        raise ExportError(f"{saved.name}: this network has no uncertainty.")
    predictive = belief.predictive()
    marginals = predictive.marginals()
    upper = marginals.icdf(torch.full_like(predictive.mean, (1 + coverage) / 2))
    if isinstance(marginals, (Normal, StudentT)):  # symmetric
        lower = 2 * marginals.loc - upper
    else:
        lower = marginals.icdf(torch.full_like(predictive.mean, (1 - coverage) / 2))
    found = {"mean": predictive.mean, "lower": lower, "upper": upper}
    found |= {name: v for name, v in vars(uncertainty(belief)).items() if v is not None}
    whole = images.shape[0], *(-(-side // 2) for side in images.shape[-2:])
    return {name: value.reshape(whole).numpy() for name, value in found.items()}


def save_depth(
    net: DenseDepth,
    path: str | os.PathLike[str],
    *,
    size: tuple[int, int],
    shift: float = 0.0,
    scale: float = 1.0,
) -> None:
    """Write a network to a file for ``priornet export`` and :func:`load_depth`.

    Args:
        net: With a head of :mod:`priornet.nn`.
        path: File to write, usually ``*.safetensors``.
        size: Height and width of its training images.
        shift: Depth of the network's output 0.
        scale: Depth of a step of 1 in the network's output.
    """
    write_tensors(Path(path), net.state_dict(), depth_record(net, size, shift, scale))


def depth_record(
    net: nn.Module, size: tuple[int, int], shift: float = 0.0, scale: float = 1.0
) -> dict[str, Any]:
    """Return the record that :func:`save_depth` writes beside the weights, ready for JSON."""
    check_units(size, shift, scale)
    sides = [int(side) for side in size]
    return {"network": _described(net), "size": sides, "shift": shift, "scale": scale}


def check_units(
    size: tuple[int, ...], shift: float, scale: float, error: type[ValueError] = ValueError
) -> None:
    """Refuse a size or units of depth that no network can have."""
    if len(size) != 2 or not all(side >= 1 and side == int(side) for side in size):
        raise error(f"`size` must be a height and a width in pixels; got {size}.")
    if not (math.isfinite(shift) and 0 < scale < math.inf):
        raise error(f"`shift` must be finite and `scale` positive; got {shift:g} and {scale:g}.")


def load_depth(path: str | os.PathLike[str]) -> SavedDepth:
    """Read a file of :func:`save_depth` or ``priornet reproduce depth``.

    Raises:
        ValueError: The file is damaged or of another kind; the message names it.
    """
    path = Path(path)
    tensors, state = read_tensors(path)
    if "network" not in state:
        raise ValueError(f"{path}: {_why_unknown(state)}")
    try:
        # Build it without memory first: a false number must not fill it.
        with torch.device("meta"):
            expected = _shapes(_built(state["network"]).state_dict())
        height, width = state["size"]
        if not all(type(side) is int for side in (height, width)):
            raise ValueError(f"its size is {state['size']}")
        shift, scale = float(state["shift"]), float(state["scale"])
        check_units((height, width), shift, scale)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: it does not describe its network: {error}") from error
    if expected != _shapes(tensors):
        raise ValueError(f"{path}: its weights do not fit the network that it describes.")
    net = _built(state["network"])
    net.load_state_dict(tensors)
    size = (height, width)
    return SavedDepth(net.eval().requires_grad_(False), size, shift, scale, str(path))


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: part.shape for name, part in tensors.items()}


def _why_unknown(state: Mapping[str, Any]) -> str:
    if "epoch" in state:
        return (
            "a checkpoint of a training that is not finished; the folder `weights` will hold its "
            "weights when it is."
        )
    return (
        "it does not describe its network, as files of older versions; train it again "
        "(`priornet reproduce depth --again`), or write it with `priornet.depth.save_depth`."
    )


def _described(net: nn.Module) -> dict[str, Any]:
    """Describe how to build a network like this one."""
    if not isinstance(net, DenseDepth):
        raise TypeError(f"only a DenseDepth can be described; got {type(net).__name__}.")
    head, projection = cast(Any, net.head), cast(Any, net.head.projection)
    kind = next((name for name, known in _HEADS.items() if type(head) is known), _PLAIN)
    if kind == _PLAIN and type(head).__module__ != DenseDepth.__module__:
        raise TypeError(f"only heads of priornet.nn can be described; got {type(head).__name__}.")
    names = list(inspect.signature(_HEADS[kind]).parameters)[1:] if kind != _PLAIN else []
    settings = {n: _BOUNDS[n](head) if n in _BOUNDS else getattr(head, n) for n in names}
    return {
        "encoder": next(name for name, known in ENCODERS.items() if type(net.encoder) is known),
        "n_decoder": net.bottom.out_channels,
        "head": {"kind": kind, **settings},
        "early_split": kind == "mixture" and projection.groups > 1,
        "norms_folded": net.encoder.norms_folded,
    }


def _built(description: Mapping[str, Any]) -> DenseDepth:
    """Build the network, with random weights."""
    settings = dict(description["head"])
    kind = settings.pop("kind")
    net = DenseDepth(
        None if kind == _PLAIN else partial(_HEADS[kind], **settings),
        description["encoder"],
        n_decoder=description["n_decoder"],
        early_split=description["early_split"],
    )
    if description["norms_folded"]:
        net.encoder.fold_norms()
    return net
