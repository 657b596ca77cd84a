"""The parts of the page of results."""

__all__: list[str] = []
