"""Fitted models as ``torch.export`` programs."""

__all__: list[str] = []
