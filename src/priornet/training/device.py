"""The device's part in training: temporary settings of a processor, and CUDA graphs.

A step of a stack is a hundred kernels of a few microseconds, and starting them one by one takes
longer than running them. A graph starts them all at once. What changes from step to step (the rows,
the learning rate, the share of training done) lies in memory that the graph reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from priornet.training.batches import Batch, Batches

_WARM_UP = 3  # plain steps before the capture: libraries set themselves up in the first ones


def available_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def at_most(n_threads: int) -> Generator[None]:
    """Limit torch to some threads for a while.

    On arrays that fit a cache a second thread costs time, on a busy machine much. The limit holds
    for the whole process, so it is put back.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def flushed() -> Generator[None]:
    """Round numbers below full precision (1e-38 in float32) to zero for a while.

    Processors are slow at such numbers. Weights of units that no row reaches decay to nothing, and
    Adam's averages with them: a few per cent of such numbers slow its step several times. The
    setting holds for the thread, so it is put back.
    """
    before = torch.tensor(1e-40, dtype=torch.float32, device="cpu").item() == 0
    torch.set_flush_denormal(True)  # does nothing on processors that cannot
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@contextmanager
def on_stream(stream: torch.cuda.Stream | None) -> Generator[None]:
    """Use a stream for a while; it waits for the default stream first, which then waits for it.

    A graph cannot be captured on the default stream.

    Args:
        stream: None to stay on the current one.
    """
    if stream is None:
        yield
        return
    default = torch.cuda.current_stream(stream.device)
    stream.wait_stream(default)
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        default.wait_stream(stream)


class Graphed:
    """A computation that is run a few times, then captured in a CUDA graph and replayed.

    Args:
        compute: It must do all that changes in place, and never wait for the device.
        stream: Stream that it runs on; None never captures, on any device.
        refused: Called with the error where a capture fails; from then on all runs are plain.
    """

    def __init__(
        self,
        compute: Callable[[], object],
        stream: torch.cuda.Stream | None,
        refused: Callable[[RuntimeError], object] | None = None,
    ) -> None:
        self.compute, self.stream, self.refused = compute, stream, refused
        self._graph: torch.cuda.CUDAGraph | None = None
        self._n_plain = 0

    def __call__(self) -> None:
        """Run the computation once."""
        if self._graph is None and self.stream is not None and self._n_plain >= _WARM_UP:
            self._capture()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._n_plain += 1
            self.compute()

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads may use the device: only this one must not wait for it.
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                self.compute()
        except RuntimeError as error:
            if self.refused is None:
                raise
            # The generator would go on as in a capture, and refuse to draw; a copy of its state
            # does not.
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
            generator.graphsafe_set_state(generator.clone_state())
            self.refused(error)
            self.stream = None
        else:
            self._graph = graph


class Replay:
    """The steps of an epoch, replayed from a CUDA graph.

    Args:
        step: One step of training; it changes all in place and never waits for the device.
        batches: The rows of every step.
        capture: False runs the same steps without a graph, on any device.

    Note:
        It draws an epoch ahead: if the batches are used again afterwards, one epoch is missing.
    """

    def __init__(
        self,
        step: Callable[[Batch, Tensor, Tensor], Tensor],
        batches: Batches,
        capture: bool = True,
    ) -> None:
        self.step, self.batches = step, batches
        weight = batches.data.weight
        self._index = batches.draw().to(weight.device)
        self._next: Tensor | None = None
        self._at = torch.zeros(1, dtype=torch.long, device=weight.device)
        self._share = weight.new_zeros(())
        self._factor = weight.new_ones(batches.n_steps, self._index.shape[1], 1)
        self._total = weight.new_zeros(self._index.shape[1:])
        self.stream = torch.cuda.Stream(weight.device) if capture else None
        # Steps in which some network has no rows left are another graph.
        self._run = {
            full: Graphed(partial(self._body, full), self.stream) for full in (True, False)
        }

    @flushed()
    def epoch(self, share: float, schedule: Callable[[float], float]) -> Tensor:
        """Run all steps of an epoch, and return the mean loss of each network, ``(S,)``."""
        batches, factor = self.batches, self._factor
        if self._next is not None:
            self._index.copy_(self._next)
        factors = torch.as_tensor(batches.factors(schedule), dtype=factor.dtype)
        factor.copy_(factors.reshape(batches.n_steps, -1, 1))
        self._share.fill_(share)
        self._at.zero_()
        self._total.zero_()
        for i in range(batches.n_steps):
            self._run[i < batches.n_full]()
        self._next = batches.draw()  # while the device is still busy
        return self._total.sum(-1) / batches.n_steps

    def _body(self, full: bool) -> None:
        batch = self.batches.at(self._at, self._index, full)
        factor = self._factor.index_select(0, self._at)[0]
        self._total.addcmul_(self.step(batch, self._share, factor), batch.weight)
        self._at += 1
