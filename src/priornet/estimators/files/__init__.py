"""Models on disk: folders of plain JSON and tensors, checked when they are read."""

__all__: list[str] = []
