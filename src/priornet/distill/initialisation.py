"""Initial weights of a student: those of a member, which leave little to learn."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from priornet.nn import Stack

__all__ = ["start_as_average", "start_as_member", "start_as_members"]


@torch.no_grad()
def start_as_member(student: nn.Module, member: nn.Module) -> None:
    """Start one network from a member with the same body: its layers, mean and precision.

    Tensors of another shape keep their own first weights, except the outputs of the head: all heads
    put mean and precision first, a mixture those of every member.

    Args:
        student: A network with a ``head``.
        member: A Gaussian network, on any device.
    """
    sources = member.state_dict()
    n_heads = getattr(student.head, "n_members", 1)
    for name, piece in student.state_dict().items():  # of the tensors themselves
        source = sources[name].to(piece) if name in sources else piece
        if source.shape == piece.shape:
            piece.copy_(source)
        elif name.startswith("head.") and source.shape[1:] == piece.shape[1:]:
            filled = torch.cat([source] * n_heads)
            piece[: len(filled)] = filled


@torch.no_grad()
def start_as_members(student: Stack, teacher: Stack, members: Sequence[int]) -> None:
    """Start from members: their layers, means and precisions; only the evidence is new.

    From random weights the likelihood of the members first gives up on the mean. All heads put mean
    and precision first, a mixture those of every member.

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


@torch.no_grad()
def start_as_average(student: Stack, teacher: Stack) -> bool:
    """Start one wide student as the average of the teacher's first members, side by side.

    Each layer of the student holds those of as many members as it is wide, apart from each other;
    the last takes the average of their means and precisions. Only the evidence is new.

    Returns:
        True if they fit: the student's layers must be the same whole multiple of a member's.
    """
    own, members = student.pieces(), teacher.pieces()
    n_layers = len(own) // 2
    n, rest = divmod(own["0.bias"].shape[-1], members["0.bias"].shape[-1])
    wide = [own[f"{i}.bias"].shape[-1] for i in range(n_layers - 1)]
    narrow = [members[f"{i}.bias"].shape[-1] for i in range(len(members) // 2 - 1)]
    if rest or n > teacher.n_networks or wide != [n * width for width in narrow]:
        return False
    for i in range(n_layers):
        weights = list(members[f"{i}.weight"][:n].to(student.weights))
        biases = members[f"{i}.bias"][:n].to(student.weights)
        weight, bias = own[f"{i}.weight"][0], own[f"{i}.bias"][0]
        if i == n_layers - 1:
            times = getattr(student.head, "n_members", 1)
            filled = torch.cat([torch.cat(weights) / n] * times, -1)
            weight[:, : filled.shape[-1]] = filled
            bias[: filled.shape[-1]] = biases.mean(0).repeat(times)
        else:
            filled = torch.cat(weights, -1) if i == 0 else torch.block_diag(*weights)
            weight.zero_()  # ramps, which members lack, begin without effect
            weight[: len(filled)] = filled
            bias.copy_(biases.flatten())
    return True
