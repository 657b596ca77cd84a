"""Distillation: where a student asks its teacher, and what it learns from the answers."""

from priornet.distill.start import start_as_average, start_as_member, start_as_members
from priornet.distill.targets import Targets, targets_for
from priornet.distill.transfer import TransferSet

__all__ = [
    "Targets",
    "TransferSet",
    "start_as_average",
    "start_as_member",
    "start_as_members",
    "targets_for",
]
