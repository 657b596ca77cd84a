"""The paper's experiment on synthetic data."""

__all__: list[str] = []
