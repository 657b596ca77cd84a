"""A small network, small images, and one call that trains the one on the others."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from priornet.nn import Head
from priornet_paper.depth.batches import TrainingSet
from priornet_paper.depth.config import PRESETS, Config, Variant, variants
from priornet_paper.depth.machine import make_fabric
from priornet_paper.depth.methods import objective_for
from priornet_paper.depth.train import Training, train
from priornet_paper.depth.trainee import Trainee

TINY = replace(
    PRESETS["smoke"], height=24, width=32, epochs=3, batch=4, learning_rate=1e-2, n_members=2
)


class PlainHead(Head):
    """One number per pixel."""

    def __init__(self, in_features):
        super().__init__(in_features, 1, per_pixel=True, init_gain=1.0)

    def distribution(self, raw):
        return raw.squeeze(-1)


class TinyNetwork(nn.Module):
    """DenseDepth's interface in four layers: half the resolution, an encoder, a head."""

    def __init__(self, make_head, width=8, drop=0.2):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.decoder = nn.Conv2d(width, width, 3, padding=1)
        self.drop = nn.Dropout2d(drop)
        self.head = (make_head or PlainHead)(width)

    def raw(self, images):
        features = torch.relu(self.decoder(self.drop(self.encoder(images - 0.5))))
        return self.head.raw(features)

    def forward(self, images):
        return self.head.distribution(self.raw(images))


def flip_only(images, depth, generator):
    """The least of an augmentation: half of the images are mirrored."""
    mirrored = torch.rand(len(images), generator=generator) < 0.5
    images = images.float() / 255
    images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
    if depth is not None:
        depth = torch.where(mirrored[:, None, None], depth.flip(-1), depth)
    return images, depth


def make_set(n=12, size=(24, 32), ood=True, seed=0):
    """Bright is far, with a tenth of the pixels unmeasured."""
    source = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, 3, *size), generator=source, dtype=torch.uint8)
    depth = 1 + images.float().mean(1) / 50
    depth[torch.rand(depth.shape, generator=source) < 0.1] = 0
    others = torch.randint(0, 99, (7, 3, *size), generator=source, dtype=torch.uint8)
    return images, depth, others if ood else None


def make_network(objective, seed=0):
    torch.manual_seed(seed)
    return TinyNetwork(objective.make_head, drop=0.0 if objective.uses_teachers else 0.2)


def run_tiny(
    folder,
    method="Single",
    config: Config = TINY,
    *,
    data_class=TrainingSet,
    fabric=None,
    **options,
) -> Any:
    """Train; gives the network and its trainee.

    Students are trained together where ``method`` names several, as in ``"EnD2+EnD"``: then lists.
    """
    fabric = make_fabric() if fabric is None else fabric
    data = data_class(*make_set(ood=method == "NWPN"), flip_only, fabric.device)
    wanted = [_variant(name, config) for name in method.split("+")]
    objectives = [objective_for(variant, data.scale) for variant in wanted]
    teachers = []
    if objectives[0].uses_teachers:
        member = objective_for(Variant("Single", "Single", config), data.scale)
        teachers = [make_network(member, seed).eval() for seed in range(1, 1 + config.n_members)]
        for number, teacher in enumerate(teachers):  # heads start at zero: give them opinions
            parameters = dict(teacher.named_parameters())
            nn.init.normal_(parameters["head.projection.weight"], std=0.3 + 0.1 * number)
    networks = [make_network(objective) for objective in objectives]
    folders = [Path(folder, *([name] if len(wanted) > 1 else [])) for name in method.split("+")]
    trainees = [
        Trainee(network, objective, own, "tiny")
        for network, objective, own in zip(networks, objectives, folders, strict=True)
    ]
    train(fabric, trainees, data, Training(seed=7, **options), teachers)
    return (networks, trainees) if len(networks) > 1 else (networks[0], trainees[0])


def _variant(name, config):
    (found,) = variants(config, [name])
    return found


class Killed(TrainingSet):
    """Its process dies in the middle of the second epoch: no exception, no clean-up."""

    checkpoints: list[Path]

    def epoch(self, seed, epoch, batch, share):
        for i, found in enumerate(super().epoch(seed, epoch, batch, share)):
            if (epoch, i) == (1, 2):
                while not all(path.exists() for path in self.checkpoints):  # written meanwhile
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            yield found


def main(folder, what, *arguments):
    """``FOLDER kill METHOD``, or ``FOLDER share N METHOD ...`` to train in N processes."""
    torch.set_num_threads(1)
    if what == "kill":
        names = arguments[0].split("+")
        folders = [Path(folder, name) for name in names] if len(names) > 1 else [Path(folder)]
        Killed.checkpoints = [own / "epoch-0001.safetensors" for own in folders]
        run_tiny(folder, arguments[0], replace(TINY, average=1.0), data_class=Killed)
        return
    n_processes, *methods = arguments
    found = share(int(n_processes), methods, folder)
    if found is not None:
        torch.save(found, Path(folder) / "found.pt")


def share(n_processes, methods, folder) -> Any:
    """Train in so many processes; the first of them gives losses and weights of each method."""
    strategy = "ddp" if n_processes > 1 else "auto"
    fabric = make_fabric(devices=n_processes, strategy=strategy)
    fabric.launch()
    found = {}
    for method in methods:
        own = Path(folder, str(n_processes), method)
        network, outcome = run_tiny(own, method, fabric=fabric)
        network, outcome = (network[-1], outcome[-1]) if "+" in method else (network, outcome)
        weights = torch.cat([w.detach().flatten() for w in network.parameters()])
        found[method] = (outcome.losses, weights)
    return found if fabric.is_global_zero else None


if __name__ == "__main__":
    main(*sys.argv[1:])
