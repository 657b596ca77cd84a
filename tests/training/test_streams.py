"""Work on a stream of its own."""

import pytest
import torch

from priornet.training.streams import on_stream


def test_without_a_stream_nothing_happens():
    with on_stream(None):
        assert torch.ones(2).sum() == 2


def test_the_usual_stream_waits_also_after_an_error(device):
    if device.type != "cuda":
        pytest.skip("streams want --device cuda")
    stream, x = torch.cuda.Stream(), torch.zeros(1 << 24, device=device)

    def work():
        assert torch.cuda.current_stream() == stream
        for _ in range(50):
            x.add_(1)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), on_stream(stream):
        work()
    assert float(x.max()) == 50.0
