"""Models on disk: folders of plain JSON and tensors, and what is checked when one is read."""

__all__: list[str] = []
