"""A model on all images of all sets: its scores, the same in smaller batches."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from priornet.distributions import Gaussian, GaussianEnsemble
from priornet_paper.depth.protocol import PROTOCOLS
from priornet_paper.depth.scoring import Scoring, evaluate, measure


def ensemble(images):
    """Predict bright pixels far; two members disagree where there is much red."""
    far = 1 + 4 * images.mean(1)[..., ::2, ::2]
    red = images[:, 0, ::2, ::2]
    loc = torch.stack([far - red, far + red]).unsqueeze(-1)
    tril = torch.ones(*loc.shape, 1)
    return GaussianEnsemble.from_precision_tril(loc, tril, validate_args=False)


@pytest.fixture
def scoring(generator):
    def pictures(n):
        return torch.randint(0, 256, (n, 3, 24, 32), generator=generator, dtype=torch.uint8)

    own, ood = pictures(9), pictures(7)
    depth = 1 + own.float().mean(1) / 60
    sets = SimpleNamespace(test=(own, depth), foreign={"lsun_bedroom": ood}.__getitem__)
    messages = []
    cpu = torch.device("cpu")
    made = Scoring(sets, PROTOCOLS["nyu"], ["lsun_bedroom"], cpu, 0, messages.append)  # pyright: ignore[reportArgumentType] (what it needs of sets)
    return made, messages


def small(n_most):
    """Make the same model on a GPU with room for so many images."""

    def predict(images):
        if len(images) > n_most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return ensemble(images)

    return predict


def test_little_memory_changes_no_score(scoring):
    scoring, messages = scoring
    whole = scoring.result(ensemble, teacher=ensemble)
    assert messages == []
    parts = scoring.result(small(4), teacher=small(4))
    assert messages[0] == "16 images at a time do not fit in memory; going on with 8."
    assert parts["rmse"] == pytest.approx(whole["rmse"], rel=1e-5)
    assert parts["ood_auc"]["lsun_bedroom"] == pytest.approx(whole["ood_auc"]["lsun_bedroom"])
    assert parts["agreement"].keys() == whole["agreement"].keys()
    assert "epkl" in parts["agreement"]


def test_maps_are_of_the_first_images(scoring):
    scoring, _ = scoring
    maps = scoring.maps(small(4), "nyu")
    names = ("prediction", "total_variance", "epkl")
    assert maps.keys() == {f"{s}/{name}" for s in ("nyu", "lsun_bedroom") for name in names}
    whole = replace(scoring).maps(ensemble, "nyu")
    for name, values in maps.items():
        assert values.shape == (6, 12, 16)
        assert values.dtype == torch.float32
        torch.testing.assert_close(values, whole[name])


def test_members_are_scored_by_themselves(scoring):
    scoring, messages = scoring

    def member(place, n_most=16):
        def predict(images):
            both = small(n_most)(images)
            loc, tril = both.means[place], both.precision_tril[place]
            return Gaussian(loc, precision_tril=tril, validate_args=False)

        return predict

    first, second = (scoring.result(member(place)) for place in (0, 1))
    found = scoring.members([member(0), member(1, n_most=4)])
    assert messages[0].endswith("going on with 8.")
    assert set(found) == {f"delta{i}" for i in (1, 2, 3)} | {
        "rel",
        "rmse",
        "log10",
        "rmse_log10",
        "nll",
    }
    for name, value in found.items():
        assert value == pytest.approx((first[name] + second[name]) / 2, rel=1e-5), name
    assert first["rmse"] != second["rmse"]


NYU = PROTOCOLS["nyu"]


def images(n=5):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (n, 3, 48, 64), dtype=torch.uint8, generator=generator)


def bright_is_far(some):
    """Predict depth from the red channel, more certain where it is green."""
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
    """Use a model of single pixels: it predicts the same of both, once mirrored back."""
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
