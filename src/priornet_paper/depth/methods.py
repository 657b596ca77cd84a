"""Each method's network and its loss on a batch of images, for standardised depth.

An objective returns sums over pixels (or images) and their counts. The loop divides, for it knows
the whole batch when several processes share one. Depth is standardised by the mean and the
deviation of all valid training pixels; :class:`Scale` takes a belief back to metres.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from priornet import losses, training
from priornet.depth import DepthError
from priornet.distill import Targets, targets_for
from priornet.distributions import GaussianEnsemble
from priornet.losses import LARGEST_INVERSE_DEPTH, dense_depth, depth_of, inverse_depth
from priornet.methods import COMPARED, Method
from priornet.nn import DenseDepth, Head, make_head, stack_head
from priornet.nn.dense_depth import EfficientNetLite0
from priornet.priors import semi_informative_prior
from priornet.training import linear_ramp, objectives, temperature
from priornet_paper.depth.config import Variant


class Batch(NamedTuple):
    """Images ``(B, 3, H, W)`` in [0, 1] with their depth, and what some methods add."""

    images: Tensor
    depth: Tensor
    """In metres, ``(B, h, w)`` at the resolution of predictions; 0 is no measurement."""
    ood: Tensor | None = None
    """Out-of-domain images ``(B', 3, H, W)``."""
    answers: Tensor | None = None
    """Unconstrained outputs of the teachers for the images, ``(M, B, h, w, 2)``."""


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of all valid training pixels, in metres."""

    mean: float
    std: float

    def standardised(self, depth: Tensor) -> Tensor:
        """Standardise depth, as networks predict it."""
        return (depth - self.mean) / self.std

    def metres(self, belief: Any) -> Any:
        """Convert a belief about standardised depth to metres."""
        return belief.affine(self.mean, self.std)


class Objective(ABC):
    """The loss of a method, and the head of its network."""

    uses_ood = False
    uses_teachers = False

    def __init__(self, variant: Variant, scale: Scale) -> None:
        self.variant, self.config, self.scale = variant, variant.config, scale

    @property
    def farthest(self) -> float:
        """Return the depth whose inverse is 1, in metres."""
        return 10.0 if self.config.dataset == "nyu" else 80.0

    @property
    def make_head(self) -> Callable[[int], Head] | None:
        """Return a function from a number of features to the head; None for a bare output."""
        kind = COMPARED[self.variant.method].head
        if kind is None:
            return None
        settings = {"min_excess": self.config.min_excess} if self.variant.method == "EnD2" else {}
        n_members = self.config.n_members
        return functools.partial(make_head, kind, n_members=n_members, per_pixel=True, **settings)

    def setting(self, share: float) -> float:
        """Return the number of the loss that changes with the share of training done."""
        return 0.0

    def weights(self, setting: Tensor) -> Tensor:
        """Return the weight of each term, ``(n,)``."""
        return setting.new_ones(1)

    def counts(self, batch: Batch) -> Tensor:
        """Count the things that each term sums over, ``(n,)``: valid pixels by default."""
        return (batch.depth > 0).sum().float().unsqueeze(0)

    @abstractmethod
    def sums(self, head: Any, outputs: Tensor, batch: Batch, setting: Tensor) -> Tensor:
        """Compute the terms, each summed over the batch, ``(n,)``.

        Args:
            head: Turns unconstrained outputs into a distribution.
            outputs: The network's, ``(B, h, w, n)``; those for out-of-domain images come last.
            batch: The images and their depth.
            setting: From :meth:`setting`, as a tensor that a CUDA graph can read.
        """

    def prediction(self, head: Any, outputs: Tensor) -> Any:
        """Return a distribution per pixel, pixels in one row ``(P,)``."""
        return head.distribution(outputs.flatten(0, -2))

    def pixels(self, batch: Batch) -> training.Batch:
        """Return the pixels as a batch of the training library: standardised depth ``(P, 1)``."""
        depth = batch.depth.flatten()
        standardised, mask = self.scale.standardised(depth).unsqueeze(-1), depth > 0
        return training.Batch(batch.images, standardised, mask, None, mask)

    def belief(self, networks: Sequence[nn.Module], images: Tensor) -> Any:
        """Predict images with trained networks, in metres: batch ``(B, h, w)``, event ``(1,)``."""
        raw = torch.stack([cast(Any, network).raw(images) for network in networks])
        if len(networks) > 1:
            return self.scale.metres(ensemble_of(raw))
        return self.scale.metres(cast(Any, networks[0]).head.distribution(raw[0]))


class _DenseDepth(Objective):
    """The original DenseDepth: one number per pixel, learnt on inverse depth."""

    def counts(self, batch: Batch) -> Tensor:
        return batch.depth.new_full((1,), len(batch.depth))  # it is a loss per image

    def sums(self, head: Any, outputs: Tensor, batch: Batch, setting: Tensor) -> Tensor:
        prediction, valid = head.distribution(outputs), batch.depth > 0
        loss = dense_depth(prediction, batch.depth, max_depth=self.farthest, mask=valid)
        return loss.sum().unsqueeze(0)

    def belief(self, networks: Sequence[nn.Module], images: Tensor) -> Tensor:
        """Predict depth in metres, ``(B, h, w)``, without uncertainty."""
        (network,) = networks
        return depth_of(cast(Any, network)(images), self.farthest)


class _Gaussian(Objective):
    """Likelihood of one Gaussian per pixel: Single, and each member of ENSM.

    Beside it DenseDepth's loss of the mean: a likelihood takes pixels one by one, DenseDepth's loss
    sees edges and neighbours, and counts near things more.
    """

    def weights(self, setting: Tensor) -> Tensor:
        own = super().weights(setting)
        weight = self.config.structure
        return torch.cat([own, own * weight]) if weight else own

    def counts(self, batch: Batch) -> Tensor:
        n_pixels = super().counts(batch)
        n_images = batch.depth.new_full((1,), len(batch.depth))
        return torch.cat([n_pixels, n_images]) if self.config.structure else n_pixels

    def sums(self, head: Any, outputs: Tensor, batch: Batch, setting: Tensor) -> Tensor:
        gaussian = self.prediction(head, outputs)
        likelihood = objectives.likelihood(gaussian, self.pixels(batch)).sum()
        if not self.config.structure:
            return likelihood.unsqueeze(0)
        return torch.stack([likelihood, self._structure(gaussian.loc, batch.depth).sum()])

    def _structure(self, mean: Tensor, depth: Tensor) -> Tensor:
        """Compute DenseDepth's loss per image, of a standardised mean ``(P, 1)``."""
        metres = self.scale.mean + self.scale.std * mean.reshape(depth.shape)
        # A point behind the camera is as near as can be: its inverse would be far.
        nearest = self.farthest / LARGEST_INVERSE_DEPTH
        inverse = inverse_depth(metres.clamp(min=nearest), self.farthest)
        return dense_depth(inverse, depth, max_depth=self.farthest, mask=depth > 0)


class _Evidential(Objective):
    """Deep Evidential Regression."""

    def sums(self, head: Any, outputs: Tensor, batch: Batch, setting: Tensor) -> Tensor:
        loss = objectives.evidential(self.config.coefficient)
        return loss(self.prediction(head, outputs), self.pixels(batch), 0.0).sum().unsqueeze(0)


class _PriorNetwork(Objective):
    """Reverse KL in domain, and back to the prior on images of another set, Eqs. (8) and (11)."""

    uses_ood = True

    def __init__(self, variant: Variant, scale: Scale) -> None:
        super().__init__(variant, scale)
        # Two targets of mean 0 and variance 1, as all valid training pixels have together.
        everything = torch.tensor([[-1.0], [1.0]])
        evidence, match = self.config.prior_evidence, self.config.prior_match
        self.prior = semi_informative_prior(everything, evidence, evidence, match)

    def setting(self, share: float) -> float:
        until = self.config.gamma_epochs / self.config.epochs
        return self.config.gamma * linear_ramp(share, until)

    def weights(self, setting: Tensor) -> Tensor:
        # Over beta: an in-domain pixel then weighs as much as under the likelihood.
        return torch.stack([torch.ones_like(setting), setting]) / self.config.beta

    def counts(self, batch: Batch) -> Tensor:
        h, w = batch.depth.shape[-2:]
        n_out = 0 if batch.ood is None else len(batch.ood) * h * w
        return torch.cat([super().counts(batch), batch.depth.new_full((1,), n_out).float()])

    def sums(self, head: Any, outputs: Tensor, batch: Batch, setting: Tensor) -> Tensor:
        _, y, _, _, valid = self.pixels(batch)
        inside, outside = outputs.tensor_split([len(batch.images)])
        prior = self._prior_like(outputs)
        nw = self.prediction(head, inside)
        own = losses.reverse_kl(nw, y, prior.expand(nw.batch_shape), self.config.beta, valid)
        nw = self.prediction(head, outside)
        other = losses.reverse_kl(nw, None, prior.expand(nw.batch_shape), 0.0)
        return torch.stack([own.sum(), other.sum()])

    def _prior_like(self, outputs: Tensor) -> Any:
        """Move the prior to the device of the outputs, once."""
        if self.prior.device != outputs.device or self.prior.dtype != outputs.dtype:
            names = ("loc", "precision_tril", "belief", "excess")
            moved = {name: getattr(self.prior, name).to(outputs) for name in names}
            self.prior = type(self.prior).from_excess(**moved, validate_args=False)
        return self.prior


class _Student(Objective):
    """Learns from the ensemble's Gaussians, not from measured depth: EnD2, EnD, MD-EnD."""

    uses_teachers = True

    def __init__(self, variant: Variant, scale: Scale) -> None:
        super().__init__(variant, scale)
        objective = COMPARED[variant.method].objective
        assert objective is not None
        self.targets: Targets = targets_for(
            objective,
            1,
            self.config.n_members,
            proxy=self.config.proxy,
            annealed=self.config.temperature > 1,
            tempering=self.config.tempering,
        )

    def setting(self, share: float) -> float:
        return float(temperature(share, self.config.temperature))

    def sums(self, head: Any, outputs: Tensor, batch: Batch, setting: Tensor) -> Tensor:
        assert batch.answers is not None
        teacher = ensemble_of(batch.answers.flatten(1, -2))
        with torch.no_grad():
            fields = dict(self.targets.fields(teacher))
        prediction = self.prediction(head, outputs)
        loss = self.targets.compare(prediction, fields, setting)
        power = self.config.student_evenness
        if power:
            # At most 1, the variance of all depths: unusual images would outweigh the others.
            loss = loss * teacher.covariance_trace().total.clamp(max=1.0) ** power
        # Where depth is never measured (sky) the teachers have learnt nothing to pass on.
        valid = batch.depth.flatten() > 0
        return torch.where(valid, loss, torch.zeros_like(loss)).sum().unsqueeze(0)


def _kind_of(method: Method) -> type[Objective]:
    if method.head is None:
        return _DenseDepth
    if method.needs_teacher:
        return _Student
    others = {"NWPN": _PriorNetwork, "DER": _Evidential}
    return _Gaussian if method.is_likelihood else others[method.key]


_METHODS = {key: _kind_of(method) for key, method in COMPARED.items()}


def objective_for(variant: Variant, scale: Scale) -> Objective:
    """Make the objective of a configuration."""
    return _METHODS[variant.method](variant, scale)


def build(objective: Objective, weights: str | None) -> DenseDepth:
    """Build the untrained network of an objective, with ImageNet weights as in ``Sources``.

    Raises:
        DepthError: Weights or widths, which the user chose, that do not fit.
    """
    config = objective.config
    encoder: Any = config.encoder
    try:
        network = DenseDepth(
            objective.make_head,
            encoder,
            n_decoder=config.n_decoder,
            pretrained=weights,
            early_split=config.early_split and objective.variant.method == "MD-EnD",
            dropout=0.0 if objective.uses_teachers else config.dropout,
        )
    except (OSError, ValueError) as error:  # of weights and widths that the user chose
        raise DepthError(str(error)) from error
    if config.norm == "frozen" and isinstance(network.encoder, EfficientNetLite0):
        network.encoder.fold_norms()  # statistics that never change need no layers of their own
    return network


# Turns outputs into Gaussians. Made here, for a compiler stops where modules are made.
_MEMBER = stack_head("gaussian", 1, per_pixel=True)


def ensemble_of(outputs: Tensor) -> GaussianEnsemble:
    """Join unconstrained outputs of M Gaussian networks, ``(M, *batch, 2)``, in an ensemble."""
    members = _MEMBER.distribution(outputs)
    return GaussianEnsemble.from_precision_tril(
        members.loc, members.precision_tril, validate_args=False
    )
