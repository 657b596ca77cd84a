"""Objectives: each is the published loss on standardised depth, over valid pixels only."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from _depth_training import TINY
from priornet import losses
from priornet.distributions import GaussianEnsemble, NormalWishart
from priornet.losses.depth import dense_depth
from priornet.priors import semi_informative_prior
from priornet_paper.depth.config import METHODS, Variant
from priornet_paper.depth.methods import Batch, Scale, ensemble_of, objective_for

SCALE = Scale(mean=3.0, std=2.0)
SIZE = (2, 12, 16)  # images, height, width of predictions


def objective(method, **changes):
    return objective_for(Variant(method, method, replace(TINY, **changes)), SCALE)


@pytest.fixture
def batch(generator):
    depth = 1 + 5 * torch.rand(SIZE, generator=generator)
    depth[:, :3] = 0
    answers = torch.randn((2, *SIZE, 2), generator=generator)
    images = torch.rand((2, 3, 24, 32), generator=generator)
    return Batch(images, depth, None, answers)


def head_of(what) -> Any:
    return what.make_head(4)


def raw_outputs(head, generator, n=SIZE[0]):
    return torch.randn((n, *SIZE[1:], head.n_outputs), generator=generator)


def loss_of(what, outputs, batch, setting, head=None):
    """Mean over what counts, as the loop forms it."""
    setting = torch.tensor(setting)
    sums = what.sums(head or head_of(what), outputs, batch, setting)
    return sums / what.counts(batch)


def valid_pixels(belief, batch):
    """The prediction at valid pixels, and their standardised depth."""
    valid = batch.depth > 0
    return valid, ((batch.depth[valid] - 3) / 2).unsqueeze(-1)


def test_single_is_the_gaussian_likelihood(batch, generator):
    what = objective("Single")
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    valid, y = valid_pixels(None, batch)
    expected = losses.gaussian_nll(head.distribution(outputs[valid]), y).mean()
    torch.testing.assert_close(loss_of(what, outputs, batch, 0.0)[0], expected)


def test_structure_is_dense_depths_loss_of_the_mean(batch, generator):
    plain, what = (objective("Single", structure=weight) for weight in (0.0, 0.3))
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    mean = (3 + 2 * head.distribution(outputs).loc.squeeze(-1)).clamp(min=0.1, max=10.0)
    expected = dense_depth(10 / mean, batch.depth, mask=batch.depth > 0).mean()
    terms = loss_of(what, outputs, batch, 0.0)
    torch.testing.assert_close(terms, torch.stack([*loss_of(plain, outputs, batch, 0.0), expected]))
    torch.testing.assert_close(what.weights(torch.tensor(0.0)), torch.tensor([1.0, 0.3]))


def test_a_mean_behind_the_camera_is_near_and_not_far(batch):
    what = objective("Single", structure=1.0)
    near = batch._replace(depth=torch.full_like(batch.depth, 0.2))
    behind, far = torch.zeros(2, *SIZE, 2)
    behind[..., 0], far[..., 0] = -5.0, 3.0  # of means -7 m and 9 m
    assert loss_of(what, behind, near, 0.0)[1] < loss_of(what, far, near, 0.0)[1]


def test_der_is_the_evidential_loss(batch, generator):
    what = objective("DER", coefficient=0.3)
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    valid, y = valid_pixels(None, batch)
    expected = losses.evidential(head.distribution(outputs[valid]), y, 0.3).mean()
    torch.testing.assert_close(loss_of(what, outputs, batch, 0.0)[0], expected)


def test_nwpn_is_reverse_kl_inside_and_the_prior_outside(batch, generator):
    what = objective("NWPN", beta=50.0, prior_evidence=0.1)
    head = head_of(what)
    outputs = raw_outputs(head, generator, n=5)
    batch = batch._replace(ood=torch.zeros(3, 3, 24, 32))
    valid, y = valid_pixels(None, batch)
    depths = torch.randn(1000, 1, generator=generator, dtype=torch.float64)
    depths = (depths - depths.mean()) / depths.std(correction=0)
    prior64 = semi_informative_prior(depths, 0.1, 0.1)
    prior = NormalWishart.from_excess(
        *(getattr(prior64, n).float() for n in ("loc", "precision_tril", "belief", "excess"))
    )
    inside = losses.reverse_kl(head.distribution(outputs[:2][valid]), y, prior, 50.0).mean()
    outside = losses.reverse_kl(head.distribution(outputs[2:]), None, prior, 0.0).mean()
    found = loss_of(what, outputs, batch, 0.01)
    torch.testing.assert_close(found, torch.stack([inside, outside]), rtol=1e-4, atol=1e-4)
    weights = what.weights(torch.tensor(0.01))
    torch.testing.assert_close(weights, torch.tensor([1 / 50, 0.01 / 50]))


def test_gamma_rises_over_the_first_epochs():
    what = objective("NWPN", epochs=20, gamma_epochs=5.0, gamma=0.4)
    assert [what.setting(share) for share in (0.0, 0.125, 0.25, 1.0)] == [0.0, 0.2, 0.4, 0.4]


def test_temperature_follows_the_paper():
    what = objective("EnD2", temperature=10.0)
    expected = {0.0: 10, 0.2: 10, 0.35: 7.75, 0.5: 5.5, 0.65: 3.25, 0.8: 1, 1.0: 1}  # 20/60/20
    assert {share: what.setting(share) for share in expected} == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [1.0, 10.0])
@pytest.mark.parametrize("tempering", ["paper", "mean-preserving"])
def test_end2_is_the_likelihood_of_the_teachers(batch, generator, temperature, tempering):
    what = objective("EnD2", temperature=temperature, tempering=tempering)
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    valid = batch.depth > 0
    teacher = ensemble_of(batch.answers[:, valid])
    belief = head.distribution(outputs[valid])
    expected = losses.endd(belief, teacher, temperature, tempering).mean()
    found = loss_of(what, outputs, batch, temperature)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "loss"), [("EnD2", losses.endd), ("EnD", losses.end), ("MD-EnD", losses.md_end)]
)
def test_students_may_weigh_pixels_by_the_variance_of_the_teachers(batch, generator, method, loss):
    what = objective(method, student_evenness=0.5)
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    valid = batch.depth > 0
    teachers = ensemble_of(batch.answers[:, valid])
    variance = teachers.means[..., 0].var(0, correction=0) + teachers.covariances.mean(0)[..., 0, 0]
    each = loss(head.distribution(outputs[valid]), teachers)
    expected = (variance.clamp(max=1.0).sqrt() * each).mean()
    found = loss_of(what, outputs, batch, 1.0)[0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_proxy_targets(batch, generator):
    what = objective("EnD2", proxy=True)
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    valid = batch.depth > 0
    teacher = ensemble_of(batch.answers[:, valid])
    expected = losses.proxy(
        head.distribution(outputs[valid]), teacher, max_belief=1e5, max_excess=1e5
    ).mean()
    torch.testing.assert_close(
        loss_of(what, outputs, batch, 1.0)[0], expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("method", "loss"), [("EnD", losses.end), ("MD-EnD", losses.md_end)])
def test_end_and_md_end(batch, generator, method, loss):
    what = objective(method)
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    valid = batch.depth > 0
    expected = loss(head.distribution(outputs[valid]), ensemble_of(batch.answers[:, valid])).mean()
    torch.testing.assert_close(loss_of(what, outputs, batch, 1.0)[0], expected)


def test_dd_is_dense_depths_loss_per_image(batch, generator):
    what = objective("DD")

    class Plain:
        def distribution(self, raw):
            return raw.squeeze(-1)

    outputs = 5 + torch.randn((*SIZE, 1), generator=generator)
    expected = dense_depth(
        outputs.squeeze(-1), batch.depth, max_depth=10.0, mask=batch.depth > 0
    ).mean()
    assert what.make_head is None
    torch.testing.assert_close(loss_of(what, outputs, batch, 0.0, Plain())[0], expected)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "DD"])
def test_what_was_not_measured_has_no_gradient(batch, generator, method):
    what = objective(method)
    head = head_of(what)
    outputs = raw_outputs(head, generator).requires_grad_()
    if what.uses_ood:
        batch = batch._replace(ood=torch.zeros(0, 3, 24, 32))
    what.sums(head, outputs, batch, torch.tensor(1.0))[0].backward()
    assert outputs.grad is not None
    assert (outputs.grad[:, :3] == 0).all()
    assert (outputs.grad[:, 3:] != 0).any()


class Fixed(torch.nn.Module):
    """Always the same outputs."""

    def __init__(self, head, outputs):
        super().__init__()
        self.head, self.outputs = head, outputs

    def raw(self, images):
        return self.outputs

    def forward(self, images):
        return self.head.distribution(self.outputs)


@pytest.mark.parametrize("method", ["Single", "NWPN", "EnD2", "MD-EnD"])
def test_beliefs_are_in_metres(generator, method):
    what = objective(method)
    head = head_of(what)
    outputs = raw_outputs(head, generator)
    belief = what.belief([Fixed(head, outputs)], torch.empty(0))
    own = head.distribution(outputs)
    assert belief.batch_shape == SIZE
    torch.testing.assert_close(belief.predictive().mean, 3 + 2 * own.predictive().mean)
    torch.testing.assert_close(belief.total_covariance(), 4 * own.total_covariance())


def test_several_networks_are_an_ensemble(generator):
    what = objective("ENSM")
    head = head_of(what)
    networks = [Fixed(head, raw_outputs(head, generator)) for _ in range(3)]
    belief = what.belief(networks, torch.empty(0))
    assert isinstance(belief, GaussianEnsemble)
    for mean, network in zip(belief.means, networks, strict=True):
        torch.testing.assert_close(mean, 3 + 2 * network(None).loc)


def test_dd_gives_depth_in_metres():
    what = objective("DD", dataset="kitti")

    class Plain(torch.nn.Module):
        def forward(self, images):
            return torch.tensor([[[8.0, 0.5]]])

    assert what.belief([Plain()], torch.empty(0)).tolist() == [[[10.0, 80.0]]]
