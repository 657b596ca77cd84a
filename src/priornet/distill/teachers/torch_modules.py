"""PyTorch networks as teachers: a list of them, or one with dropout."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal
from torch.nn.modules import dropout

from priornet.distill.teacher import Answers, Teacher, TeacherError, checked
from priornet.distributions import Gaussian
from priornet.tables.raw import as_matrix, copy_table

_BATCH = 4096
_CHANNELWISE = (dropout.Dropout1d, dropout.Dropout2d, dropout.Dropout3d)
_ANY = (dropout.Dropout, *_CHANNELWISE, dropout.AlphaDropout, dropout.FeatureAlphaDropout)


class ModulesTeacher(Teacher):
    """An ensemble of networks, each of which predicts a distribution or a mean and a variance.

    Networks answer in evaluation mode, on their own device and without gradients, and go back to
    their mode: running averages of batch normalisation stay unchanged.

    Args:
        modules: The members. Each returns a Gaussian (:class:`torch.distributions.Normal`,
            ``Independent`` of one, ``MultivariateNormal``, or priornet's) or a pair
            of mean and variance, one row or one map per input.
        inputs: Makes the members' input from the table; by default its values as one tensor. The
            input moves to the member's device and dtype; integers from ``inputs`` (tokens, indices)
            keep their dtype.
        channels_first: Pairs are maps ``(N, K, H, W)``; their channels become the last dimension.
        batch_size: Inputs per call.
    """

    def __init__(
        self,
        modules: Sequence[nn.Module],
        *,
        inputs: Callable[[Any], Tensor] | None = None,
        channels_first: bool = False,
        batch_size: int = _BATCH,
    ) -> None:
        self.modules = list(modules)
        wrong = [type(m).__name__ for m in self.modules if not isinstance(m, nn.Module)]
        if not self.modules or wrong:
            found = f"an element is a {wrong[0]}" if wrong else "it is empty"
            raise TypeError(f"`modules` must be a filled list of torch modules; {found}.")
        self.inputs = inputs
        self.channels_first = channels_first
        self.batch_size = batch_size

    def gaussians(self, X: Any) -> tuple[Tensor, Tensor]:
        """Ask every member."""
        means, covariances = zip(*self._members(X), strict=True)
        for parts in (means, covariances):
            shapes = {tuple(part.shape) for part in parts}
            if len(shapes) > 1:
                raise TeacherError(f"the members' outputs differ in shape: {sorted(shapes)}.")
        return torch.stack(means), torch.stack(covariances)

    def _members(self, X: Any) -> Iterable[tuple[Tensor, Tensor]]:
        return (self._ask(module, X) for module in self.modules)

    def answers(self, images: Tensor) -> Answers:
        """Ask every member about images, and check the answers of every pixel.

        :attr:`Answers.kept` has the batch shape of the outputs, such as ``(N, H, W)``.
        """
        means, covariances = self.gaussians(images)
        # Answers for images always have the target dimension, after the pixels.
        return checked(means, covariances, tuple(means.shape[1:-1]))

    def n_bytes(self) -> int | None:
        """Measure parameters and buffers."""
        tensors = [t for m in self.modules for t in (*m.parameters(), *m.buffers())]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @torch.no_grad()
    def _ask(self, module: nn.Module, X: Any) -> tuple[Tensor, Tensor]:
        first = next(iter(module.parameters()), torch.zeros(()))
        if self.inputs is not None:
            inputs = self.inputs(X if isinstance(X, Tensor) else copy_table(X))
        else:
            inputs = X if isinstance(X, Tensor) else torch.as_tensor(as_matrix(X).astype(float))
        # Integers are kept: embeddings take nothing else.
        keeps = self.inputs is not None and not inputs.is_floating_point()
        dtype = inputs.dtype if keeps else first.dtype
        with _evaluating(module):
            pieces = [
                self._gaussian(module(x.to(first.device, dtype)))
                for x in inputs.split(self.batch_size)
            ]
        means, covariances = zip(*pieces, strict=True)
        return torch.cat(means).double().cpu(), torch.cat(covariances).double().cpu()

    def _gaussian(self, output: Any) -> tuple[Tensor, Tensor]:
        """Take mean ``(N, *, K)`` or ``(N,)``, and covariance or variance, from an output."""
        if isinstance(output, Distribution):
            return _moments(output)
        if isinstance(output, (tuple, list)) and len(output) == 2:
            mean, variance = output
            if self.channels_first:
                mean, variance = mean.movedim(1, -1), variance.movedim(1, -1)
            return mean, variance
        raise TeacherError(
            "a member must return a Gaussian distribution or a pair of mean and variance; got "
            f"{type(output).__name__}."
        )


class DropoutTeacher(ModulesTeacher):
    """One network with dropout: each member is the network with some units switched off.

    Monte-Carlo dropout (Gal & Ghahramani, 2016), with the same units off for all inputs: a member
    is a function, which a student can learn. The network stays in evaluation mode, which leaves
    batch normalisation unchanged. The masks come from a seed; no global random state is used.

    Args:
        module: A network with :class:`torch.nn.Dropout` layers, or those for channels.
        n_members: Number of thinned networks.
        seed: Of the masks.
        inputs: See :class:`ModulesTeacher`, as for the rest.
        channels_first: See there.
        batch_size: See there.
    """

    def __init__(
        self,
        module: nn.Module,
        n_members: int = 20,
        *,
        seed: int = 0,
        inputs: Callable[[Any], Tensor] | None = None,
        channels_first: bool = False,
        batch_size: int = _BATCH,
    ) -> None:
        super().__init__(
            [module], inputs=inputs, channels_first=channels_first, batch_size=batch_size
        )
        if n_members < 2:
            raise ValueError(f"`n_members` must be at least 2; got {n_members}.")
        self.n_members, self.seed = n_members, seed
        self._layers()

    def _members(self, X: Any) -> Iterable[tuple[Tensor, Tensor]]:
        """Ask the network once for each set of masks."""
        for member in range(self.n_members):
            with ExitStack() as hooks:
                for i, layer in enumerate(self._layers()):
                    seed = hash((self.seed, member, i)) % 2**63
                    hook = layer.register_forward_hook(_Mask(seed))
                    hooks.callback(hook.remove)
                answer = self._ask(self.modules[0], X)
            yield answer

    def _layers(self) -> list[Any]:
        layers = [m for m in self.modules[0].modules() if isinstance(m, _ANY)]
        for layer in layers:
            if not isinstance(layer, (dropout.Dropout, *_CHANNELWISE)):
                raise TypeError(f"{type(layer).__name__} cannot be used for Monte-Carlo dropout.")
        if not any(layer.p > 0 for layer in layers):
            raise ValueError(
                "the network has no torch.nn.Dropout layer with a rate above 0; dropout called as "
                "a function inside `forward` cannot be reached."
            )
        return layers


class _Mask:
    """A hook that switches off the same units of a dropout layer for every input."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, layer: Any, _: Any, output: Tensor) -> Tensor:
        keep = 1 - layer.p
        if keep == 0:
            return torch.zeros_like(output)
        shape = output.shape[1:]
        if isinstance(layer, _CHANNELWISE):
            shape = (shape[0], *(1 for _ in shape[1:]))
        draw = torch.rand(shape, generator=torch.Generator().manual_seed(self.seed))
        return output * (draw < keep).to(output) / keep


def _moments(distribution: Distribution) -> tuple[Tensor, Tensor]:
    if isinstance(distribution, MultivariateNormal):
        return distribution.mean, distribution.covariance_matrix
    if isinstance(distribution, Gaussian):
        return distribution.loc, distribution.data_covariance()
    base = distribution.base_dist if isinstance(distribution, Independent) else distribution
    if isinstance(base, Normal):
        return base.mean, base.variance
    raise TeacherError(
        f"a member returned a {type(distribution).__name__}; a teacher's members must be Gaussian."
    )


@contextmanager
def _evaluating(module: nn.Module) -> Generator[None]:
    """Set evaluation mode for a while; each layer goes back to its own mode."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
