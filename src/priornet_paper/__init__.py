"""The paper, run again: its experiments and the page of results.

The library never imports this package.
"""

__all__: list[str] = []
