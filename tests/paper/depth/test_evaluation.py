"""A model on all images: what it is shown, and that batches change nothing."""

import pytest
import torch

from priornet.distributions import Gaussian
from priornet_paper.depth.evaluation import evaluate, measure
from priornet_paper.depth.protocol import PROTOCOLS

NYU = PROTOCOLS["nyu"]


def images(n=5):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (n, 3, 48, 64), dtype=torch.uint8, generator=generator)


def bright_is_far(some):
    """Depth from the red channel, more certain of what is green."""
    assert some.dtype == torch.float32
    assert 0 <= some.min() <= some.max() <= 1
    loc, variance = 1 + 5 * some[:, 0, ::2, ::2], 0.1 + some[:, 1, ::2, ::2]
    return Gaussian(loc[..., None], variance=variance[..., None])


@pytest.mark.parametrize("batch", [1, 2, 5, 8])
def test_batches_change_nothing(batch):
    depth = 1 + torch.rand(5, 48, 64, generator=torch.Generator().manual_seed(1))
    result = evaluate(bright_is_far, images(), depth, NYU, batch=batch).result()
    whole = evaluate(bright_is_far, images(), depth, NYU, batch=99).result()
    assert result["n_images"] == 5
    for name in ("rmse", "nll"):
        assert result[name] == pytest.approx(whole[name], rel=1e-6)


def test_mirrored_images_are_shown_mirrored():
    """A model that looks at each pixel by itself says the same of both, once mirrored back."""
    depth = torch.ones(5, 48, 64)

    def symmetric(some):
        return 1 + 5 * some[:, 0].unfold(-1, 2, 2).mean(-1).unfold(-2, 2, 2).mean(-1)

    result = evaluate(symmetric, images(), depth, NYU).result()
    assert result["rmse"] == pytest.approx(result["not_mirrored"]["rmse"], rel=1e-6)
    assert "not_mirrored" not in evaluate(symmetric, images(), depth, NYU, mirrored=False).result()


def test_foreign_images_are_measured_as_own_ones_are():
    depth = torch.ones(5, 48, 64)
    own = evaluate(bright_is_far, images(), depth, NYU).per_image()
    for name, value in measure(bright_is_far, images(), NYU, batch=2).per_image().items():
        torch.testing.assert_close(value, own[name])


@pytest.mark.parametrize(
    ("given", "depth", "message"),
    [
        (
            images().float(),
            torch.ones(5, 48, 64),
            r"bytes of shape \(N, 3, H, W\); got torch.float",
        ),
        (images(), torch.ones(4, 48, 64), "5 images need as many depth maps; got 4"),
    ],
)
def test_bad_input_is_named(given, depth, message):
    with pytest.raises(ValueError, match=message):
        evaluate(bright_is_far, given, depth, NYU)
