"""Sets of photographs with a depth for each pixel: formats, decoding, packing."""

__all__: list[str] = []
