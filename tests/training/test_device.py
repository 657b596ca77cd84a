"""Training on the chosen device, with the numbers of the CPU; CUDA graphs; denormal numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from priornet import losses
from priornet.nn import GaussianHead, NormalWishartHead, StackedMLP
from priornet.priors import semi_informative_prior
from priornet.training import Batches, Rows, StackedAdam, fit, linear_ramp, loop, temperature
from priornet.training.device import Graphed, Replay, flushed, on_stream


@pytest.mark.parametrize("kind", ["gaussian", "normal-wishart"])
def test_a_stack_trains_on_the_device_as_on_the_cpu(kind, device):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=generator, dtype=torch.float64)
    y = x[:, :1].sin() + 0.1 * torch.randn(60, 1, generator=generator, dtype=torch.float64)

    def train(where):
        prior = semi_informative_prior(y.to(where))
        head = (GaussianHead if kind == "gaussian" else NormalWishartHead)(16)

        def loss(prediction, batch, _):
            if kind == "gaussian":
                return losses.gaussian_nll(prediction, batch.targets)
            return losses.reverse_kl(prediction, batch.targets, prior, beta=10.0)

        def validation(stack):
            return (
                -stack.together(x[40:].to(where)).predictive().log_prob(y[40:].to(where)).mean(-1)
            )

        stack = StackedMLP(3, (16,), head, [0, 1, 2], torch.float64).to(where)
        data = Rows(x.to(where), y.to(where), torch.ones(60, dtype=torch.float64, device=where))
        rows = [torch.arange(40), torch.arange(33), torch.arange(10, 40)]
        batches = Batches(data, rows, [0, 1, 2], 16)
        optimizer = StackedAdam(stack.weights, [1e-2, 1e-3, 1e-2], 1e-4, clip=10.0)
        fit(stack, loss, batches, optimizer, epochs=5, validation=validation, average=1.0)
        return stack.weights.detach().cpu()

    torch.testing.assert_close(train(device), train("cpu"), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["DistilledRegressor", "PriorNetRegressor", "EvidentialRegressor"])
def test_an_estimator_fits_on_the_device(name, device):
    estimators = pytest.importorskip("priornet.estimators")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(300)
    options = {"hidden": (16,), "epochs": 20, "random_state": 0, "device": str(device)}
    if name == "DistilledRegressor":
        options |= {"n_members": 3, "student_epochs": 20, "n_transfer": 2000}
    model = getattr(estimators, name)(**options).fit(X, y)
    assert model.score(X, y) > 0.9
    lower, upper = model.predict_interval(X, method="conformal")
    assert (lower < upper).all()


GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(90, 3, generator=GENERATOR, dtype=torch.float64)
Y = X[:, :1].sin() + 0.1 * torch.randn(90, 1, generator=GENERATOR, dtype=torch.float64)


def make_nll(_):
    # A loss whose size hangs on the share of training done, as annealed ones do.
    def nll(gaussian, batch, share):
        return losses.gaussian_nll(gaussian, batch.targets) * linear_ramp(share, 0.5)

    return nll


def make_reverse_kl(device):
    prior = semi_informative_prior(Y.to(device))
    starts = torch.tensor([[2.0], [5.0], [3.0]], dtype=torch.float64, device=device)

    def reverse_kl(nw, batch, share):
        beta = 10.0 * temperature(share, starts)
        return losses.reverse_kl(nw, batch.targets, prior, beta.expand(batch.weight.shape))

    return reverse_kl


LOSSES = {
    "gaussian": (GaussianHead, make_nll),
    "normal-wishart": (NormalWishartHead, make_reverse_kl),
}
RAGGED = [torch.arange(40), torch.arange(90), torch.arange(20, 75)]
EVEN = [torch.arange(60), torch.arange(30, 90), torch.arange(60)]


class Uncaptured(Replay):
    """The steps of a graph, run without one."""

    def __init__(self, step, batches):
        super().__init__(step, batches, capture=False)


def train(kind, rows, *, weighted, extra, device="cpu", **options):
    head, make_loss = LOSSES[kind]
    seeds = [3, 4, 5]
    stack = StackedMLP(3, (16,), head(16), seeds, torch.float64).to(device)
    weight = (
        torch.linspace(0.5, 1.5, 90, dtype=torch.float64) if weighted else torch.ones_like(X[:, 0])
    )
    outside = [torch.arange(10)] * 3 if extra else None
    batches = Batches(
        Rows(X.to(device), Y.to(device), weight.to(device)), rows, seeds, 16, outside, 4 * extra
    )
    optimizer = StackedAdam(stack.weights, [1e-2, 3e-3, 1e-3], [0.0, 1e-3, 1e-2], clip=10.0)
    history = fit(stack, make_loss(device), batches, optimizer, epochs=4, average=1.0, **options)
    return stack.weights.detach().cpu(), torch.stack(history.train).cpu()


def in_place(monkeypatch):
    """Make `fit` take the path of a graph on any device, but for the capture."""

    def make(step, batches):
        optimizer, mean = (
            cell.cell_contents
            for cell in step.__closure__
            if hasattr(cell.cell_contents, "count_in_place")
        )
        optimizer.count_in_place()
        mean.count_in_place()
        return Uncaptured(step, batches)

    monkeypatch.setattr(loop, "Steps", make)


@pytest.mark.parametrize("rows", [RAGGED, EVEN], ids=["ragged", "even"])
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("weighted", "extra"), [(False, 0), (True, 1)])
def test_static_memory_gives_the_weights_of_the_plain_loop(
    monkeypatch, kind, rows, weighted, extra
):
    plain, loss = train(kind, rows, weighted=weighted, extra=extra)
    in_place(monkeypatch)
    again, loss_again = train(kind, rows, weighted=weighted, extra=extra)
    torch.testing.assert_close(again, plain, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(loss_again, loss, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("rows", [RAGGED, EVEN], ids=["ragged", "even"])
@pytest.mark.parametrize("kind", LOSSES)
def test_a_graph_gives_the_weights_of_the_plain_loop(device, kind, rows):
    if device.type != "cuda":
        pytest.skip("CUDA graphs want --device cuda")
    plain, _ = train(kind, rows, weighted=True, extra=1, device=device, graph=False)
    graphed, _ = train(kind, rows, weighted=True, extra=1, device=device)
    torch.testing.assert_close(graphed, plain, rtol=1e-9, atol=1e-9)


def test_without_a_stream_nothing_happens():
    with on_stream(None):
        assert torch.ones(2).sum() == 2


def test_the_default_stream_waits_also_after_an_error(device):
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


def test_a_computation_that_cannot_be_captured_goes_on_plainly(device):
    if device.type != "cuda":
        pytest.skip("CUDA graphs want --device cuda")
    x, refused = torch.zeros(1, device=device), []

    def compute():
        x.add_(1)
        x.item()  # waits for the device

    stream = torch.cuda.Stream()
    graphed = Graphed(compute, stream, refused.append)
    with on_stream(stream):
        for _ in range(6):
            graphed()
    assert len(refused) == 1
    assert x.item() == 6
    assert torch.rand(2, device=device).isfinite().all()  # numbers can be drawn again


def test_without_a_stream_every_run_is_plain():
    runs = []
    graphed = Graphed(lambda: runs.append(1), None)
    for _ in range(6):
        graphed()
    assert len(runs) == 6


TINY = torch.tensor([1e-40, 1e-30])


@pytest.fixture
def can_flush():
    can = torch.set_flush_denormal(True)
    torch.set_flush_denormal(False)
    if not can:
        pytest.skip("this processor keeps denormal numbers")


@pytest.mark.usefixtures("can_flush")
def test_denormal_numbers_are_zero_inside_only():
    with flushed():
        assert (TINY * 1).tolist()[0] == 0
        assert (TINY * 1).tolist()[1] > 0
    assert (TINY * 1).tolist()[0] > 0


@pytest.mark.usefixtures("can_flush")
def test_flushing_that_was_on_before_stays_on():
    torch.set_flush_denormal(True)
    try:
        with flushed():
            pass
        assert (TINY * 1).tolist()[0] == 0
    finally:
        torch.set_flush_denormal(False)


def test_an_error_inside_puts_the_setting_back():
    with pytest.raises(ZeroDivisionError), flushed():
        _ = 1 / 0
    assert (TINY * 1).tolist()[0] > 0


@pytest.mark.usefixtures("can_flush")
def test_training_flushes_in_its_steps_and_nowhere_else():
    seen = {"loss": set(), "validation": set(), "progress": set()}

    def look(where):
        seen[where].add((TINY * 1).tolist()[0] == 0)

    def loss(gaussian, batch, share):
        look("loss")
        return (gaussian.loc - batch.targets).square().sum(-1)

    def validation(stack):
        look("validation")
        return torch.zeros(2)

    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    stack = StackedMLP(3, (4,), GaussianHead(4), range(2))
    batches = Batches(Rows(x, x[:, :1], torch.ones(20)), [torch.arange(20)] * 2, range(2), 8)
    optimizer = StackedAdam(stack.weights, 1e-2)
    fit(
        stack,
        loss,
        batches,
        optimizer,
        epochs=2,
        validation=validation,
        progress=lambda _: look("progress"),
    )
    look("progress")
    assert seen == {"loss": {True}, "validation": {False}, "progress": {False}}
