"""Networks answer in evaluation mode, and are left as they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Independent, MultivariateNormal, Normal

from priornet.distill import DropoutTeacher, ModulesTeacher, TeacherError, ask_all
from priornet.distributions import Gaussian

X = np.random.default_rng(0).standard_normal((50, 3))


class Net(nn.Module):
    """A network with batch normalisation and dropout, with an output in one of several forms."""

    def __init__(self, seed, form="pair", k=1, p=0.5):
        super().__init__()
        self.form, self.k = form, k
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.body = nn.Sequential(
                nn.Linear(3, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(p), nn.Linear(16, 2 * k)
            )

    def forward(self, x):
        mean, raw = self.body(x).chunk(2, -1)
        variance = torch.exp(raw)
        if self.form == "normal":
            return Normal(mean, variance.sqrt())
        if self.form == "independent":
            return Independent(Normal(mean, variance.sqrt()), 1)
        if self.form == "multivariate":
            return MultivariateNormal(mean, torch.diag_embed(variance))
        if self.form == "gaussian":
            return Gaussian(mean, variance=variance)
        if self.form == "vector":
            return mean[:, 0], variance[:, 0]
        return mean, variance


@pytest.mark.parametrize("form", ["pair", "normal", "independent", "multivariate", "gaussian"])
def test_all_forms_of_a_gaussian_agree(form):
    members = [Net(seed, form, k=2).eval() for seed in range(3)]
    found = ask_all(ModulesTeacher(members), X).ensemble
    assert found.means.shape == (3, 50, 2)
    for m, member in enumerate(members):
        member.form = "pair"
        mean, variance = member(torch.tensor(X, dtype=torch.float32))
        np.testing.assert_allclose(found.means[m], mean.detach(), rtol=1e-5)
        np.testing.assert_allclose(
            found.covariances[m].diagonal(dim1=-2, dim2=-1), variance.detach(), rtol=1e-5
        )


def test_vectors_count_as_one_target():
    found = ask_all(ModulesTeacher([Net(0, "vector"), Net(1, "vector")], batch_size=7), X)
    assert found.ensemble.means.shape == (2, 50, 1)


@pytest.mark.parametrize("kind", [ModulesTeacher, DropoutTeacher])
def test_batch_normalisation_and_modes_are_untouched(kind):
    net = Net(0).train()
    net.body[1].eval()  # frozen by its owner
    before = {name: value.clone() for name, value in net.state_dict().items()}
    teacher = kind([net]) if kind is ModulesTeacher else kind(net, 3)
    teacher.gaussians(X)
    assert net.training
    assert not net.body[1].training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_inputs_follow_the_dtype_of_a_member():
    found = ModulesTeacher([Net(0).double(), Net(1).half()]).gaussians(X[:2])[0]
    assert found.shape == (2, 2, 1)


def test_dropout_members_are_functions_and_average_to_monte_carlo():
    net = Net(0)
    teacher = DropoutTeacher(net, 400, seed=1)
    means, _ = teacher.gaussians(X)
    again, _ = DropoutTeacher(net, 400, seed=1, batch_size=7).gaussians(X[::-1].copy())
    torch.testing.assert_close(means, again.flip(1), rtol=1e-5, atol=1e-6)
    state = torch.get_rng_state()
    teacher.gaussians(X)
    assert torch.equal(state, torch.get_rng_state())
    # The common way: a mask for every row, with torch's own dropout.
    net.eval()
    net.body[3].train()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        x = torch.tensor(X, dtype=torch.float32)
        expected = torch.stack([net(x)[0] for _ in range(400)]).double()
    for draws in (means, expected):
        assert draws.std(0).min() > 0
    error = (means.var(0) / 400 + expected.var(0) / 400).sqrt()
    assert ((means.mean(0) - expected.mean(0)).abs() < 5 * error).all()
    ratio = (means.var(0) / expected.var(0)).mean()
    assert 0.85 < ratio < 1.15


def test_channels_are_dropped_whole():
    class Image(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout2d(0.5)
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, x):
            x = self.drop(x) * self.weight
            return x, torch.ones_like(x)

    images = torch.ones(2, 8, 4, 5)
    means, _ = DropoutTeacher(Image(), 10, channels_first=True).gaussians(images)
    assert means.shape == (10, 2, 4, 5, 8)
    assert set(means.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(means.amin((2, 3)), means.amax((2, 3)))


def test_maps_answer_per_pixel():
    class Map(nn.Module):
        def __init__(self, shift):
            super().__init__()
            self.shift = nn.Parameter(torch.tensor(shift))

        def forward(self, x):
            mean = x[:, :1] + self.shift
            return mean, torch.full_like(mean, 0.5)

    images = torch.rand(2, 3, 4, 5)
    images[0, 0, 0, 0] = torch.nan
    found = ModulesTeacher([Map(0.0), Map(1.0)], channels_first=True).answers(images)
    assert found.kept.shape == (2, 4, 5)
    assert int(found.kept.sum()) == 39
    torch.testing.assert_close(
        found.ensemble.knowledge_covariance().flatten(), torch.full((39,), 0.25).double()
    )


def test_a_table_with_names_can_be_prepared():
    def inputs(table):
        return torch.tensor(np.column_stack([table["a"], table["b"], table["b"]])).float()

    table = {"b": X[:, 1], "a": X[:, 0]}
    found = ModulesTeacher([Net(0), Net(1)], inputs=inputs).gaussians(table)[0]
    expected = ModulesTeacher([Net(0), Net(1)]).gaussians(X[:, [0, 1, 1]])[0]
    torch.testing.assert_close(found, expected)


class Words(nn.Module):
    """An embedding, which takes integers only."""

    def __init__(self):
        super().__init__()
        self.embedding, self.last = nn.Embedding(5, 4), nn.Linear(4, 2)

    def forward(self, tokens):
        mean, raw = self.last(self.embedding(tokens).mean(1)).chunk(2, -1)
        return mean, raw.exp()


def test_tokens_stay_integers():
    tokens = torch.randint(0, 5, (50, 3), generator=torch.Generator().manual_seed(0))
    member = Words()
    means, variances = ModulesTeacher([member], inputs=lambda X: tokens).gaussians(X)
    with torch.no_grad():
        mean, variance = member(tokens)
    torch.testing.assert_close(means[0], mean.double())
    torch.testing.assert_close(variances[0], variance.double())


def test_what_cannot_be_a_member_is_refused():
    with pytest.raises(TypeError, match="an element is a str"):
        ModulesTeacher(["net"])  # pyright: ignore
    with pytest.raises(TypeError, match="empty"):
        ModulesTeacher([])
    with pytest.raises(ValueError, match=r"no torch\.nn\.Dropout layer"):
        DropoutTeacher(Net(0, p=0.0))
    with pytest.raises(TypeError, match="AlphaDropout cannot be used"):
        DropoutTeacher(nn.Sequential(nn.Linear(3, 2), nn.AlphaDropout()))
    with pytest.raises(TeacherError, match="pair of mean and variance; got Tensor"):
        ask_all(ModulesTeacher([nn.Linear(3, 1)]), X)
    with pytest.raises(TeacherError, match="differ in shape"):
        ask_all(ModulesTeacher([Net(0), Net(0, k=2)]), X)


def test_size_is_that_of_the_weights():
    assert ModulesTeacher([nn.Linear(3, 1), nn.Linear(3, 1)]).n_bytes() == 2 * 4 * 4


# -- on the device under test (--device cuda); by default the CPU ----------------------------


@pytest.mark.parametrize("kind", [ModulesTeacher, DropoutTeacher])
def test_networks_answer_from_where_they_are(kind, device):
    """Answers lie on the CPU whatever the device, and are those of networks on the CPU."""

    def teacher(where):
        nets = [Net(seed).double().to(where) for seed in range(3)]
        return kind(nets) if kind is ModulesTeacher else kind(nets[0], n_members=4)

    for inputs in (X, torch.tensor(X, device=device)):
        found, expected = teacher(device).gaussians(inputs), teacher("cpu").gaussians(X)
        for own, other in zip(found, expected, strict=True):
            assert own.device.type == "cpu"
            torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-12)


def test_maps_come_from_the_device(device):
    class Maps(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Conv2d(3, 2, 3, padding=1, dtype=torch.float64)

        def forward(self, images):
            mean, raw = self.body(images).chunk(2, 1)
            return mean, raw.exp()

    torch.manual_seed(0)
    members, images = [Maps() for _ in range(3)], torch.rand(4, 3, 6, 8, dtype=torch.float64)
    expected = ModulesTeacher(members, channels_first=True).answers(images)
    moved = ModulesTeacher([m.to(device) for m in members], channels_first=True, batch_size=3)
    found = moved.answers(images.to(device))
    assert found.kept.shape == (4, 6, 8)
    torch.testing.assert_close(found.ensemble.means, expected.ensemble.means, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::priornet.distill.FaithfulnessWarning")  # a short training
def test_a_student_learns_on_the_device_from_networks_there(device):
    estimators = pytest.importorskip("priornet.estimators")
    generator = np.random.default_rng(1)
    X = generator.standard_normal((400, 3))

    class Line(nn.Module):
        def __init__(self, slope):
            super().__init__()
            self.slope = nn.Parameter(torch.tensor(slope))

        def forward(self, x):
            return self.slope * x[:, :1] + 1, 0.1 + 0 * x[:, :1]

    teacher = ModulesTeacher([Line(slope).to(device) for slope in (0.8, 1.0, 1.2)])
    student = estimators.DistilledRegressor(
        teacher, hidden=(32,), student_epochs=100, random_state=0, device=str(device)
    ).fit(X)
    error = student.predict(X) - (X[:, 0] + 1)
    assert np.sqrt(np.mean(error**2)) < 0.2
    assert (student.predict_uncertainty(X).knowledge_variance > 0).all()
