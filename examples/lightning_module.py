"""A prior network as a Lightning module: reverse KL inside, back to the prior outside (NWPN).

pip install lightning
python examples/lightning_module.py
"""

import logging
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from priornet import losses
from priornet.nn import MLP, NormalWishartHead
from priornet.priors import semi_informative_prior
from priornet.uncertainty import uncertainty


class PriorNetwork(lightning.LightningModule):
    """An ordinary module: a network, a step, an optimiser. Losses take the head's distribution."""

    def __init__(self, targets: Tensor) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(MLP(1, 64, 64), NormalWishartHead(64))
        self.prior = semi_informative_prior(targets, match="variance")

    def forward(self, x: Tensor):
        """A belief for every row."""
        return self.network(x)

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        """Losses are per row; ``multi_task`` takes their means."""
        x, y = batch
        outside = x + 4 * torch.sign(torch.randn_like(x))  # where it should know nothing
        own, other = self(x), self(outside)
        loss, _ = losses.multi_task(
            losses.reverse_kl(own, y, self.prior.expand(own.batch_shape), beta=30.0),
            losses.reverse_kl(other, None, self.prior.expand(other.batch_shape), beta=0.0),
            gamma=0.5,
        )
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        """Log the likelihood of new targets, which counts in the end."""
        x, y = batch
        self.log("nll", -self(x).predictive().log_prob(y).mean(), prog_bar=True)

    def configure_optimizers(self):
        """Adam, as ever; the rate falls to zero, so that the last step is not any step."""
        optimizer = torch.optim.Adam(self.parameters(), lr=3e-3)
        epochs = self.trainer.max_epochs
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)]


def main() -> None:
    """Train for a few epochs and look at one row inside and one outside the data."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*(num_workers|GPU|tree).*")
    lightning.seed_everything(0, verbose=False)
    x = torch.empty(2000, 1).uniform_(-2, 2)
    y = torch.sin(3 * x) + 0.1 * torch.randn_like(x)
    rows = TensorDataset(x, y)
    model = PriorNetwork(y)
    with TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=40,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=Path(folder),
            gradient_clip_val=1.0,
        )
        loader = DataLoader(rows, 64, shuffle=True)
        trainer.fit(model, loader, DataLoader(rows, 500))
    print(f"nll {trainer.callback_metrics['nll']:.3f} (the noise alone: -0.884)")
    model.eval()
    for name, at in (("inside, x = 1", 1.0), ("outside, x = 6", 6.0)):
        with torch.no_grad():
            found = uncertainty(model(torch.tensor([[at]])))
        print(
            f"{name:<15} data sd {found.data_variance.sqrt().item():.3f}, "
            f"knowledge sd {found.knowledge_variance.sqrt().item():.3f}"
        )


if __name__ == "__main__":
    main()
