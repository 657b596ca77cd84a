"""The networks that ``benchmarks/depth.py`` times, and their steps, executed in several ways."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from priornet import losses
from priornet.distributions import GaussianEnsemble, precision_averages
from priornet.nn import DenseDepth, GaussianHead, NormalWishartHead
from priornet.uncertainty import Uncertainty, uncertainty

SEED = 0
MEASURES = tuple(field.name for field in fields(Uncertainty))
Run = Callable[[], Tensor]


@dataclass(frozen=True)
class Size:
    """The measured quantities."""

    height: int = 480
    width: int = 640
    encoder: Any = "densenet169"
    n_decoder: int | None = None
    members: int = 5
    batch: int = 8
    batches: tuple[int, ...] = (16, 32, 64)
    seconds: float = 1.5
    """How long each variant is timed, in so many blocks."""
    blocks: int = 6
    compiled_batches: tuple[int, ...] = (32,)
    """Fewer: each is compiled anew, which takes minutes."""


@dataclass(frozen=True)
class How:
    """The execution of a step."""

    half: bool = True
    """bfloat16 autocast and channels last; otherwise torch's default float32 and layout."""
    compiled: bool = False
    graph: bool = True
    tuned: bool = False
    """cuDNN tries its algorithms before it chooses one."""
    teachers: str = "in turn"
    """Or "streams"."""

    def __str__(self) -> str:
        words = ["bfloat16 channels last" if self.half else "float32"]
        words += ["compiled"] * self.compiled + ["CUDA graph"] * self.graph
        return ", ".join(words + ["tuned"] * self.tuned)

    @property
    def layout(self) -> torch.memory_format:
        return torch.channels_last if self.half else torch.contiguous_format


Make = Callable[[int, How], Run]
"""From a batch size and a way to execute it to a step."""


def make_network(head: str, size: Size, device: str, seed: int) -> DenseDepth:
    torch.manual_seed(seed)
    kind = {"gaussian": GaussianHead, "nw": NormalWishartHead}[head]
    with torch.device(device):
        return DenseDepth(
            lambda n: kind(n, per_pixel=True, init_gain=1.0), size.encoder, n_decoder=size.n_decoder
        )


def asked_only(net: DenseDepth) -> DenseDepth:
    """A network that will not learn any more: norms in evaluation mode are part of convolutions."""
    net.eval().requires_grad_(False).encoder.fold_norms()
    return net


def narrowed(net: DenseDepth) -> DenseDepth:
    net = copy.deepcopy(net)
    net.narrow()
    return net


# Compiled as functions of the network, these serve every network of the same shape: one body for
# both students, and one for all teachers.
def trained_features(net: DenseDepth, images: Tensor, half: bool) -> Tensor:
    with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
        return net.features(images)


def asked_outputs(net: DenseDepth, images: Tensor, half: bool) -> Tensor:
    with torch.autocast(images.device.type, torch.bfloat16, enabled=half):
        return net.raw(images)


def gaussian_loss(net: DenseDepth, features: Tensor, y: Tensor) -> Tensor:
    return losses.gaussian_nll(net.head.distribution(net.outputs(features)), y).mean()


def ensemble_of(raw: Tensor, head: Any) -> GaussianEnsemble:
    """Answers ``(M, B, h, w, 2)`` as an ensemble."""
    members = head.distribution(raw)
    return GaussianEnsemble.from_precision_tril(members.loc, members.precision_tril, False)


def distillation_loss(net: DenseDepth, features: Tensor, raw: Tensor, head: Any) -> Tensor:
    nw = net.head.distribution(net.outputs(features))
    return losses.endd(nw, ensemble_of(raw, head)).mean()


def cached_loss(net: DenseDepth, features: Tensor, averages: Any) -> Tensor:
    return losses.endd(net.head.distribution(net.outputs(features)), averages).mean()


def all_measures(belief: Any) -> list[Tensor]:
    """The prediction, and every measure of uncertainty."""
    unsure = uncertainty(belief)
    found = [v for name in MEASURES if (v := getattr(unsure, name)) is not None]
    mean = belief.means.mean(0) if isinstance(belief, GaussianEnsemble) else belief.loc
    return [mean, *found]


def student_measures(net: DenseDepth, raw: Tensor) -> list[Tensor]:
    return all_measures(net.head.distribution(raw))


def ensemble_measures(raw: Tensor, head: Any) -> list[Tensor]:
    return all_measures(ensemble_of(raw, head))


class Steps:
    """Networks with random weights, and what is done with them."""

    def __init__(self, size: Size, device: str) -> None:
        self.size, self.device, self.on_gpu = size, device, device == "cuda"
        make = functools.partial(make_network, size=size, device=device)
        self.teachers = [asked_only(make("gaussian", seed=m + 1)) for m in range(size.members)]
        self.students = {head: make(head, seed=SEED) for head in ("gaussian", "nw")}
        # As it is when it has learnt and is asked; those above learn.
        self.served = asked_only(copy.deepcopy(self.students["nw"]))
        self.first = {head: copy.deepcopy(s.state_dict()) for head, s in self.students.items()}
        # As autocast would round their weights at every call.
        self.narrow_teachers = [narrowed(teacher) for teacher in self.teachers]
        self.narrow_served = narrowed(self.served)
        self.compiled: dict[str, Callable[..., Any]] = {}

    def forget(self) -> None:
        """Drop what the last step left."""
        for student in self.students.values():
            student.zero_grad(set_to_none=True)

    def _function(self, name: str, plain: Callable[..., Any], how: How) -> Callable[..., Any]:
        """A function, or what the compiler makes of it."""
        if not how.compiled:
            return plain
        if name not in self.compiled:
            backend = "inductor" if self.on_gpu else "eager"
            options = {"fullgraph": True, "dynamic": False, "backend": backend}
            self.compiled[name] = torch.compile(plain, **options)
        return self.compiled[name]

    def _laid_out(self, how: How) -> None:
        asked = (*self.teachers_for(how), self.served_for(how))
        for net in (*asked, *self.students.values()):
            net.to(memory_format=how.layout)

    def teachers_for(self, how: How) -> list[DenseDepth]:
        return self.narrow_teachers if how.half else self.teachers

    def served_for(self, how: How) -> DenseDepth:
        return self.narrow_served if how.half else self.served

    def _student(self, head: str, how: How) -> DenseDepth:
        """A student with its first weights."""
        net = self.students[head]
        net.load_state_dict(self.first[head])
        self._laid_out(how)
        return net.train()

    def _data(self, batch: int, how: How) -> tuple[Tensor, Tensor]:
        """Images, and standardised depths at half their resolution."""
        generator = torch.Generator().manual_seed(SEED)
        height, width = self.size.height, self.size.width
        images = torch.rand((batch, 3, height, width), generator=generator)
        depth = torch.randn((batch, height // 2, width // 2, 1), generator=generator)
        return images.to(self.device, memory_format=how.layout), depth.to(self.device)

    # -- training ---------------------------------------------------------------------------------

    def _updating(self, net: DenseDepth, how: How, loss: Callable[[], Tensor]) -> Run:
        """A whole step: gradient and Adam."""
        on_gpu = {"fused": True, "capturable": how.graph} if self.on_gpu else {}
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, **on_gpu)

        def step() -> Tensor:
            optimizer.zero_grad(set_to_none=True)
            value = loss()
            value.backward()
            optimizer.step()
            return value.detach()

        return step

    def training(self, batch: int, how: How) -> Run:
        """A Gaussian model."""
        net = self._student("gaussian", how)
        images, y = self._data(batch, how)
        body = self._function("body", trained_features, how)
        loss = self._function("gaussian", gaussian_loss, how)
        return self._updating(net, how, lambda: loss(net, body(net, images, how.half), y))

    def distillation(self, batch: int, how: How) -> Run:
        """EnD2 from teachers that are asked in every step."""
        net = self._student("nw", how)
        images, _ = self._data(batch, how)
        body = self._function("body", trained_features, how)
        loss = self._function("distillation", distillation_loss, how)
        asked, head = self._asking(images, how), self.teachers[0].head

        def whole() -> Tensor:
            with asked() as answers:  # on streams they think while the student does
                features = body(net, images, how.half)
            return loss(net, features, torch.stack(answers), head)

        return self._updating(net, how, whole)

    def cached(self, batch: int, how: How) -> Run:
        """EnD2 from averages that were computed once."""
        net = self._student("nw", how)
        images, _ = self._data(batch, how)
        body = self._function("body", trained_features, how)
        loss = self._function("cached", cached_loss, how)
        with torch.no_grad(), self._asking(images, replace(how, compiled=False))() as answers:
            pass
        averages = precision_averages(ensemble_of(torch.stack(answers), self.teachers[0].head))
        return self._updating(net, how, lambda: loss(net, body(net, images, how.half), averages))

    # -- teachers ---------------------------------------------------------------------------------

    def _asking(self, images: Tensor, how: How) -> Callable[[], Any]:
        """A context around other work, which has the teachers' raw outputs when it ends."""
        ask, teachers = self._function("teacher", asked_outputs, how), self.teachers_for(how)

        def one(teacher: DenseDepth) -> Tensor:
            return ask(teacher, images, how.half)

        if how.teachers == "streams" and self.on_gpu:
            return self._on_streams(one, teachers)

        @contextlib.contextmanager
        def in_turn() -> Iterator[list[Tensor]]:
            with torch.no_grad():
                answers = [one(teacher) for teacher in teachers]
            yield answers

        return in_turn

    def _on_streams(
        self, one: Callable[[DenseDepth], Tensor], teachers: list[DenseDepth]
    ) -> Callable[[], Any]:
        """Each teacher beside the others: small kernels of one fill the gaps of another."""
        streams = [torch.cuda.Stream() for _ in teachers]

        @contextlib.contextmanager
        def apart() -> Iterator[list[Tensor]]:
            main, answers = torch.cuda.current_stream(), []
            for stream, teacher in zip(streams, teachers, strict=True):
                stream.wait_stream(main)
                with torch.no_grad(), torch.cuda.stream(stream):
                    answers.append(one(teacher))
            yield answers
            for stream in streams:
                main.wait_stream(stream)

        return apart

    # -- inference --------------------------------------------------------------------------------

    def student_inference(self, batch: int, how: How) -> Run:
        """The student's prediction with every measure."""
        self._laid_out(how)
        net = self.served_for(how)
        images, _ = self._data(batch, how)
        ask = self._function("student asked", asked_outputs, how)
        measures = self._function("student measures", student_measures, how)

        def run() -> Tensor:
            with torch.no_grad():
                return measures(net, ask(net, images, how.half))[0].mean()

        return run

    def ensemble_inference(self, batch: int, how: How) -> Run:
        """The ensemble's prediction with every measure that it has."""
        self._laid_out(how)
        images, _ = self._data(batch, how)
        asked, head = self._asking(images, how), self.teachers[0].head
        measures = self._function("ensemble measures", ensemble_measures, how)

        def run() -> Tensor:
            with torch.no_grad():
                with asked() as answers:
                    pass
                return measures(torch.stack(answers), head)[0].mean()

        return run
