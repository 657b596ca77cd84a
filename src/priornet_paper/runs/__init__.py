"""Run jobs of an experiment in processes, and keep their finished parts."""

__all__: list[str] = []
