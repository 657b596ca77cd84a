"""Settings that have a name: the paper's, ours for one GPU, and a short one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from priornet_paper.depth.config import Config

__all__ = ["PRESETS", "config_for"]

PRESETS: dict[str, Config] = {
    "fast": Config(),
    # Alhashim and Wonka (2018): Adam at a constant 1e-4, batches of 8, their augmentation.
    "paper": Config(
        encoder="densenet169",
        height=480,
        width=640,
        seeds=(0, 1, 2, 3),
        gamma_seeds=4,
        epochs=20,
        student_epochs=None,
        batch=8,
        learning_rate=1e-4,
        encoder_rate=1.0,
        weight_decay=0.0,
        schedule="constant",
        warm_up=0.0,
        clip=5.0,
        average=0.0,
        dropout=0.0,
        structure=0.0,
        jitter=0.0,
        zoom=1.0,
        student_start="imagenet",
        temperature=10.0,
        transfer=0.0,
        strange=0.0,
        norm="batch",
        precision="float32",
        min_excess=1e-4,
    ),
    "smoke": Config(
        n_decoder=64,
        height=64,
        width=96,
        seeds=(0,),
        n_members=2,
        epochs=2,
        student_epochs=None,
        batch=4,
        n_images=8,
        n_test=4,
        gamma_epochs=1.0,
        gammas=(0.0, 0.01),
    ),
}

# KITTI's images are twice as wide: less than half of their height has depth. There are a third as
# many of them as of NYU's: it takes more epochs for a like number of steps, and models differ more
# from seed to seed. Members learn DenseDepth's loss of the mean as on NYU: on images held out it
# helps here more than there. Students have 1.6 times their members' epochs, as on NYU.
# NWPN's beta was chosen by the likelihood of training images held out (benchmarks/README.md): its
# prior adds twice the variance of all depths to beta times that of a pixel, which is more where
# depths reach farther.
# Evenness was chosen by how far students are from their ensembles, on the last training images of
# every category.
_KITTI: dict[str, dict[str, Any]] = {
    "fast": {
        "height": 192,
        "width": 640,
        "seeds": (0, 1, 2, 3),
        "epochs": 100,
        "student_epochs": 160,
        "student_evenness": 0.5,
        "beta": 300.0,
    },
    "paper": {"height": 192, "width": 640, "seeds": (0, 1)},
    "smoke": {"height": 64, "width": 160},
}


def config_for(dataset: str, preset: str) -> Config:
    """A preset for one data set."""
    if preset not in PRESETS:
        raise ValueError(f'unknown preset "{preset}"; choose one of: {", ".join(PRESETS)}.')
    if dataset != "kitti":
        return replace(PRESETS[preset], dataset=dataset)
    return replace(PRESETS[preset], dataset="kitti", **_KITTI[preset])
