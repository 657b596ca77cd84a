"""The paper's experiments: each is ``run(config) -> results``, ready to be written as JSON."""

from priornet.experiments import diabetes, results, synthetic

__all__ = ["diabetes", "results", "synthetic"]
