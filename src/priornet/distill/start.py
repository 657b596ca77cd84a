"""A student's first weights: those of a member, which is most of the way already."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from priornet.nn import Stack

__all__ = ["start_as_members"]


@torch.no_grad()
def start_as_members(student: Stack, teacher: Stack, members: Sequence[int]) -> None:
    """Start from members: their layers, means and precisions; only the evidence is new.

    From random weights the likelihood of the members first gives up on the mean. All heads put mean
    and precision first, a mixture's for every head.

    Args:
        student: The students, of the teacher's widths.
        teacher: Gaussian networks.
        members: For each student, the network of the teacher that it starts from.
    """
    sources = teacher.pieces()
    for name, piece in student.pieces().items():
        source = sources[name][list(members)].to(piece)
        times = getattr(student.head, "n_members", 1) if piece.shape != source.shape else 1
        filled = torch.cat([source] * times, -1)
        piece[..., : filled.shape[-1]] = filled
