"""Training on a CUDA stream of its own: a graph cannot be captured on the usual one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

__all__ = ["on_stream"]


@contextmanager
def on_stream(stream: torch.cuda.Stream | None) -> Generator[None]:
    """Work on a stream for a while; before and after, it and the usual one wait for each other.

    Args:
        stream: None to stay where one is.
    """
    if stream is None:
        yield
        return
    usual = torch.cuda.current_stream(stream.device)
    stream.wait_stream(usual)
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        usual.wait_stream(stream)
