"""Distillation: where a student asks its teacher, and what it learns from the answers."""

from priornet.distill.targets import Targets, targets_for
from priornet.distill.transfer import TransferSet

__all__ = ["Targets", "TransferSet", "targets_for"]
