"""Training runs on the chosen device, with the numbers of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from priornet import losses
from priornet.nn import GaussianHead, NormalWishartHead
from priornet.nn.stacked import StackedMLP
from priornet.priors import semi_informative_prior
from priornet.training import Batches, Rows, StackedAdam, fit


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
