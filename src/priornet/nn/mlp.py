"""A plain multilayer perceptron: the body under a head."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["MLP"]


class MLP(nn.Module):
    """Fully connected ReLU layers; the last width is what a head takes.

    Args:
        in_features: Number of inputs.
        widths: Width of each hidden layer.

    Example:
        >>> MLP(3, 50, 50)(torch.randn(4, 3)).shape
        torch.Size([4, 50])
    """

    def __init__(self, in_features: int, *widths: int) -> None:
        super().__init__()
        if not widths:
            raise ValueError("`widths` must name at least one hidden layer.")
        layers: list[nn.Module] = []
        for width in widths:
            layers += [nn.Linear(in_features, width), nn.ReLU()]
            in_features = width
        self.layers = nn.Sequential(*layers)
        self.out_features = in_features

    def forward(self, x: Tensor) -> Tensor:
        """Features of a batch."""
        return self.layers(x)
