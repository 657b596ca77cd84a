"""What differs from the paper, from the settings that the results carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from priornet_paper.page.depth.numbers import TITLES, DepthScores
from priornet_paper.page.markdown import link, shown, table

__all__ = ["SETTING", "setting", "setting_in_short"]

SETTING = "Depth: what differs from the paper"
"""Title of the part."""

Content = Mapping[str, Any]

_ENCODERS = {"efficientnet_lite0": "EfficientNet-Lite0", "densenet169": "DenseNet-169"}
_NORMS = {"frozen": "ImageNet's statistics, frozen", "batch": "those of each batch"}
_STARTS = {"member": "the ensemble's first member", "imagenet": "ImageNet weights"}


def _images(c: Content) -> str:
    return f"{c['n_train']:,} / {c['n_test']:,}"


def _foreign(c: Content) -> str:
    return ", ".join(f"{TITLES.get(name, name)} {n:,}" for name, n in c["foreign"].items())


def _size(c: Content) -> str:
    config = c["config"]
    return f"{config['height']} x {config['width']}, predictions half of it"


def _encoder(c: Content) -> str:
    return _ENCODERS[c["config"]["encoder"]]


def _upsampling(_: Content) -> str:
    return "bilinear, between pixel centres"


def _length(c: Content) -> str:
    config = c["config"]
    steps = -(-c["n_train"] // config["batch"]) * config["epochs"]
    return f"{config['epochs']} epochs of batches of {config['batch']} ({steps:,} steps)"


def _optimiser(c: Content) -> str:
    config = c["config"]
    decay, rate = config["weight_decay"], config["learning_rate"]
    parts = [f"{'AdamW' if decay else 'Adam'}, rate {rate:g}"]
    if config["encoder_rate"] != 1:
        parts.append(f"{config['encoder_rate']:g} times that for the encoder")
    if decay:
        parts.append(f"decay {decay:g}")
    parts.append({"cosine": "cosine to 0", "constant": "constant"}[config["schedule"]])
    if config["warm_up"]:
        parts.append(f"after {100 * config['warm_up']:g} % of the steps to warm up")
    return f"{', '.join(parts)}; gradients clipped at {config['clip']:g}"


def _dropout(c: Content) -> str:
    share = c["config"].get("dropout", 0.0)
    return f"{share:g} of the maps; none for students" if share else "none"


def _average(c: Content) -> str:
    epochs = c["config"]["average"]
    return f"exponential, over {epochs:g} epochs" if epochs else "none"


def _norm(c: Content) -> str:
    return _NORMS[c["config"]["norm"]]


def _augmentation(c: Content) -> str:
    config = c["config"]
    parts = [f"mirrored ({config['flip']:g})", f"channels swapped ({config['swap']:g})"]
    if config["jitter"]:
        parts.append(f"colours varied ({config['jitter']:g})")
    if config["zoom"] > 1:
        parts.append(f"enlarged up to {config['zoom']:g} times")
    return ", ".join(parts)


def _gaussian(c: Content) -> str:
    weight = c["config"].get("structure", 0.0)  # older files do not name it
    return "likelihood" + (
        f", and {weight:g} times DenseDepth's loss of the mean" if weight else ""
    )


def _without_structure(c: Content) -> str:
    """What sets networks apart that are not Gaussian from those that are."""
    return ", without DenseDepth's loss of the mean" if c["config"].get("structure", 0.0) else ""


def _students(c: Content) -> str:
    config = c["config"]
    epochs = config["student_epochs"] or config["epochs"]
    start = _STARTS[config["student_start"]]
    farther = f", asked {config['transfer']:g} farther out" if config["transfer"] else ""
    strange = f", {100 * config['strange']:g} % of images strange" if config["strange"] else ""
    power = config.get("student_evenness", 0.0)
    even = f", pixels weighted by the teachers' variance to the power {power:g}" if power else ""
    return f"from {start}, {epochs} epochs{farther}{strange}{even}"


def _endd(c: Content) -> str:
    config = c["config"]
    aim = "the Normal-Wishart fitted to the members" if config["proxy"] else "members' likelihood"
    least, warmth = f"excess at least {config['min_excess']:g}", config["temperature"]
    tempered = f"T = {warmth:g}"
    if warmth > 1:
        tempered += f" annealed, tempering {config['tempering']}"
    return f"{aim}, {tempered}, {least}"


def _nwpn(c: Content) -> str:
    config = c["config"]
    rise = f"rising over {config['gamma_epochs']:g} epochs"
    match = f"prior matched to the training depths' {config['prior_match']}"
    weights = f"beta = {config['beta']:g}, gamma = {config['gamma']:g} {rise}"
    return f"{weights}, {match}{_without_structure(c)}"


def _der(c: Content) -> str:
    return f"evidence regulariser {c['config']['coefficient']:g}{_without_structure(c)}"


def _seeds(c: Content) -> str:
    config, groups = c["config"], dict[int, list[str]]()
    for name, scores in c["methods"].items():
        n_seeds = len((scores.get("rel") or {}).get("values") or config["seeds"])
        groups.setdefault(n_seeds, []).append(name)
    usual = len(config["seeds"])
    fewer = (f"; {n} for {', '.join(who)}" for n, who in sorted(groups.items()) if n != usual)
    return f"{usual}, ensembles of {config['n_members']}{''.join(fewer)}"


def _precision(c: Content) -> str:
    on_gpu = c["device"] != "cpu"
    names = {"bf16": "bfloat16, losses float32", "float32": "float32"}
    return names[c["config"]["precision"]] if on_gpu else "float32"


def _work(c: Content) -> str:
    return f"{c['seconds'] / 60:,.0f} min of {c['device']}"


# What, the paper's (its own words, or DenseDepth's public code where it says "unchanged"), ours.
_ROWS: tuple[tuple[str, str, Callable[[Content], str]], ...] = (
    (
        "images for training / test",
        "NYU: DenseDepth's 50,000 / 654; KITTI: Eigen's split, 697 for test",
        _images,
    ),
    ("foreign images", "numbers not given; also LSUN church", _foreign),
    ("image size", "NYU 480 x 640; KITTI not given", _size),
    ("encoder (ImageNet weights)", "DenseNet-169", _encoder),
    ("up-sampling in the decoder", "bilinear, corners aligned", _upsampling),
    ("seeds", "4, ensembles of 5", _seeds),
    ("length", "20 epochs of batches of 8 (DenseDepth's defaults)", _length),
    ("optimiser", "Adam, rate 1e-4, constant", _optimiser),
    ("dropout in the decoder", "none", _dropout),
    ("averaged weights", "none", _average),
    ("batch norms of the encoder", "those of each batch", _norm),
    ("precision", "float32", _precision),
    ("augmentation", "mirrored (0.5), channels swapped (0.25)", _augmentation),
    ("Single, members of ENSM", "likelihood", _gaussian),
    (
        "students (EnD2, EnD, MD-EnD)",
        "start and length not given; no out-of-domain images",
        _students,
    ),
    ("EnD2", "members' likelihood, T = 10 annealed", _endd),
    ("NWPN", "gamma = 0.05 rising over 5 epochs, 10 more epochs; beta not given", _nwpn),
    ("DER", "weight not given", _der),
    ("work", "not given", _work),
)


def setting(contents: Mapping[str, Content]) -> list[str]:
    """One table: what, the paper's, ours for each set."""
    rows = [
        [what, paper, *(ours(content) for content in contents.values())]
        for what, paper, ours in _ROWS
    ]
    header = ["", "the paper", *(f"{TITLES[name]} here" for name in contents)]
    lines = table(header, rows, left=len(header))
    codes = "The paper keeps DenseDepth's data, augmentation, optimisation and protocol; where it "
    codes += "gives no number, DenseDepth's public code does. "
    if "nyu" in contents:
        codes += "Our NYU is the labelled set, its depth in steps of 4 cm. "
    if "kitti" in contents:
        codes += "Our KITTI is its road benchmark, whose depth is interpolated from LiDAR in the "
        codes += "lower half of each image: smooth at edges, no more than 65 m. "
    return [f"{codes}LSUN church images were not to be had.", *lines, *_protocols(contents)]


def _protocols(contents: Mapping[str, Content]) -> list[str]:
    """How depth was scored, as the results say it."""
    lines: list[str] = []
    for name, content in contents.items():
        protocol = content["protocol"]
        crop = protocol["crop"]
        ranges = f"{protocol['closest_metres']:g} to {protocol['farthest_metres']:g} m"
        box = f"rows {crop['top']:.3f} to {crop['bottom']:.3f} of the height, columns "
        box += f"{crop['left']:.3f} to {crop['right']:.3f} of the width"
        below = protocol.get("limit_metres")
        limit = "" if below is None else f", targets below {below:g} m"
        lines.append(f"- {TITLES[name]}: {box}; predictions clipped to {ranges}{limit}.")
    any_protocol = next(iter(contents.values()))["protocol"]
    return [
        f"Depth scores: {any_protocol['depth_scores']}. Scores of distributions: "
        f"{any_protocol['distribution_scores']}.",
        "",
        *lines,
    ]


def setting_in_short(contents: Mapping[str, Content], ours: DepthScores, paper: DepthScores) -> str:
    """Sentences beside the goals: how far NYU and the students are from the paper's."""
    content = contents.get("nyu")
    if content is None:
        return ""
    config = content["config"]
    found = [scores.mean("nyu", "EnD2", "delta1") for scores in (ours, paper)]
    text = (
        f"Depth is {link('not set up', SETTING)} as in the paper: NYU is {content['n_train']:,} "
        f"training images at {config['height']} x {config['width']} with {_encoder(content)}, "
        "where the paper has 50,000 at 480 x 640 with DenseNet-169"
    )
    if found[0] is not None and found[1] is not None:
        text += f" (EnD2's δ1: {shown(found[0], 3)} here, {shown(found[1], 3)} in the paper)"
    share = config.get("strange", 0.0)
    strange = f", and students see {100 * share:g} % made-up out-of-domain images, the paper's none"
    return f"{text}{strange if share else ''}."
