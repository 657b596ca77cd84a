"""Depth from images: the second half of the paper, on real photographs."""

__all__: list[str] = []
