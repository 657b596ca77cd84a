"""Depth from images: the second half of the paper, on real photographs."""

from priornet.experiments.depth.evaluation import evaluate, measure
from priornet.experiments.depth.protocol import PROTOCOLS, Protocol
from priornet.experiments.depth.scores import Scorer

__all__ = ["PROTOCOLS", "Protocol", "Scorer", "evaluate", "measure"]
