"""Settings behind the numbers: what differs from the paper, time, devices, versions, commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from priornet.evaluation import signature_of
from priornet_paper.page.numbers import SETS, TITLES, Content, Scores, shown
from priornet_paper.page.results import OWN, Notes, Results
from priornet_paper.page.sections import (
    FAILS,
    HOLDS,
    NOT_RUN,
    UNFINISHED,
    Goal,
    Section,
    folded,
    link,
    table,
)

_MOST_MINUTES = 75.0
_KINDS = {
    "paper": "Settings of preset <code>paper</code>",
    OWN: f"Settings of preset <code>{OWN}</code>",
    "splits": f"Settings of preset <code>{OWN}</code> on the published splits",
    "synthetic": "Settings of the synthetic experiment, preset <code>paper</code>",
    "depth": "Settings of the depth experiment, preset <code>fast</code>",
}
_HEADER = (
    *("preset", "data", "rows or images", "seconds", "device", "versions", "processor", "commit"),
)


def making(results: Results, notes: Notes) -> Section:
    """Write the settings of each preset, one line per run, and the time the paper preset took.

    Args:
        results: Results to describe.
        notes: Notes on the runs have the key ``making``.
    """
    section = Section([], [_time(results)])
    runs = {
        kind: {name: results.runs[kind, name].content for name in results.datasets(kind)}
        for kind in ("paper", OWN, "splits")
    }
    draws = [run.content for found in results.draws.values() for run in found]
    synthetic = {} if results.synthetic is None else {"synthetic": results.synthetic}
    for kind, title in _KINDS.items():
        # Settings stand in the order of the files, runs by size.
        found = {name: run.content for (k, name), run in results.runs.items() if k == kind}
        found |= {"synthetic": synthetic, "depth": results.depth}.get(kind, {})
        if found:
            section.lines += folded(title, table(["setting", "value"], _settings(found), 2))
    rows = [_run_line(kind, content) for kind, found in runs.items() for content in found.values()]
    rows += [_run_line(f"{OWN}, seed {content['config']['seed']}", content) for content in draws]
    rows += [_run_line("synthetic", content) for content in synthetic.values()]
    rows += [_run_line("depth", content) for content in results.depth.values()]
    rows += [_run_line("depth, new seeds", content) for content in results.new_seeds.values()]
    section.lines += ["", *(f"- {text}" for text in notes.about("making"))] if rows else []
    section.lines += table(_HEADER, rows, 2) if rows else ["", "Nothing has been run yet.", ""]
    return section


def _time(results: Results) -> Goal:
    runs = [results.get("paper", name) for name in SETS]
    found = [run for run in runs if run is not None and run.is_complete]
    minutes = sum(run.content["seconds"] for run in found) / 60
    devices = ", ".join(sorted({run.content["device"] for run in found}))
    state = UNFINISHED if found else NOT_RUN
    if minutes > _MOST_MINUTES:
        state = FAILS
    elif len(found) == len(runs):
        state = HOLDS if devices == "cpu" else "measured on another device"
    return Goal(
        f"The paper preset on the {len(runs)} sets, grid search included, within "
        f"{_MOST_MINUTES:g} minutes on two CPU cores",
        f"{shown(minutes, 1)} min, {len(found)} of {len(runs)} sets ({devices})" if found else "",
        state,
    )


def _settings(contents: Mapping[str, Content]) -> Iterator[list[str]]:
    """Yield each setting once; sets that differ from most are named."""
    flat = {name: dict(_flatten(content["config"])) for name, content in contents.items()}
    keys = {key: None for settings in flat.values() for key in settings}
    for key in keys:
        groups: dict[str, list[str]] = {}
        for name, settings in flat.items():
            groups.setdefault(settings.get(key, "none"), []).append(name)
        most = max(groups, key=lambda text: len(groups[text]))
        others = [f"{text} ({', '.join(n)})" for text, n in groups.items() if text != most]
        yield [f"`{key}`", "; ".join([most, *others])]


def _flatten(config: Content, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings with their paths; a dictionary without others in it is one line."""
    for key, value in config.items():
        if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
            yield from _flatten(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return " / ".join(_plain(inner) for inner in value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _run_line(kind: str, content: Content) -> list[str]:
    versions = ", ".join(f"{name} {v}" for name, v in (content.get("versions") or {}).items())
    n_rows = content.get("n_rows", content.get("n_train"))
    rows = "" if n_rows is None else f"{n_rows:,}"
    return [
        kind,
        content["dataset"],
        rows if content.get("complete", True) else f"first {rows}",
        f"{content['seconds']:,.0f}",
        content["device"],
        versions,
        _by_methods(content, lambda signed: signed.get("processor") or "unknown"),
        _by_methods(content, _commit),
    ]


def _by_methods(content: Content, text_of: Callable[[Content], str]) -> str:
    """Format the signature of a run; if methods differ, each text with its methods."""
    groups: dict[str, list[str]] = {}
    for group in ("methods", "variants"):
        for name, method in content.get(group, {}).items():
            groups.setdefault(text_of(signature_of(content, method)), []).append(name)
    if len(groups) < 2:
        return next(iter(groups), text_of(content))
    return "<br>".join(f"{text}: {', '.join(names)}" for text, names in groups.items())


def _commit(signed: Content) -> str:
    commits = (signed.get("commit") or "unknown").split(", ")
    text = ", ".join(name[:7] for name in commits)
    return f"{text}, changed" if signed.get("dirty") else text


# -- depth: what differs from the paper -----------------------------------------------------------

SETTING = "Depth: what differs from the paper"
_ENCODERS = {"efficientnet_lite0": "EfficientNet-Lite0", "densenet169": "DenseNet-169"}
_NORMS = {"frozen": "ImageNet's statistics, frozen", "batch": "those of each batch"}
_STARTS = {"member": "the ensemble's first member", "imagenet": "ImageNet weights"}
_SCHEDULES = {"cosine": "cosine to 0", "constant": "constant"}
_PRECISIONS = {"bf16": "bfloat16, losses float32", "float32": "float32"}


def _images(content: Content, _: Content) -> str:
    return f"{content['n_train']:,} / {content['n_test']:,}"


def _ood_images(content: Content, _: Content) -> str:
    return ", ".join(f"{TITLES.get(name, name)} {n:,}" for name, n in content["foreign"].items())


def _seeds(content: Content, config: Content) -> str:
    groups = dict[int, list[str]]()
    for name, scores in content["methods"].items():
        n_seeds = len((scores.get("rel") or {}).get("values") or config["seeds"])
        groups.setdefault(n_seeds, []).append(name)
    n_all = len(config["seeds"])
    fewer = (f"; {n} for {', '.join(names)}" for n, names in sorted(groups.items()) if n != n_all)
    return f"{n_all}, ensembles of {config['n_members']}{''.join(fewer)}"


def _length(content: Content, config: Content) -> str:
    steps = -(-content["n_train"] // config["batch"]) * config["epochs"]
    return f"{config['epochs']} epochs of batches of {config['batch']} ({steps:,} steps)"


def _optimiser(_: Content, config: Content) -> str:
    decay, rate = config["weight_decay"], config["learning_rate"]
    parts = [f"{'AdamW' if decay else 'Adam'}, rate {rate:g}"]
    if config["encoder_rate"] != 1:
        parts.append(f"{config['encoder_rate']:g} times that for the encoder")
    if decay:
        parts.append(f"decay {decay:g}")
    parts.append(_SCHEDULES[config["schedule"]])
    if config["warm_up"]:
        parts.append(f"after {100 * config['warm_up']:g} % of the steps to warm up")
    return f"{', '.join(parts)}; gradients clipped at {config['clip']:g}"


def _dropout(_: Content, config: Content) -> str:
    share = config.get("dropout", 0.0)
    return f"{share:g} of the maps; none for students" if share else "none"


def _average(_: Content, config: Content) -> str:
    epochs = config["average"]
    return f"exponential, over {epochs:g} epochs" if epochs else "none"


def _augmentation(_: Content, config: Content) -> str:
    parts = [f"mirrored ({config['flip']:g})", f"channels swapped ({config['swap']:g})"]
    if config["jitter"]:
        parts.append(f"colours varied ({config['jitter']:g})")
    if config["zoom"] > 1:
        parts.append(f"enlarged up to {config['zoom']:g} times")
    return ", ".join(parts)


def _gaussian(_: Content, config: Content) -> str:
    weight = config.get("structure", 0.0)  # older files do not name it
    more = f", and {weight:g} times DenseDepth's loss of the mean" if weight else ""
    return f"likelihood{more}"


def _without_structure(config: Content) -> str:
    """Describe what networks lack that are not Gaussian."""
    return ", without DenseDepth's loss of the mean" if config.get("structure", 0.0) else ""


def _students(_: Content, config: Content) -> str:
    epochs, start = config["student_epochs"] or config["epochs"], _STARTS[config["student_start"]]
    transfer = f", transfer images of strength {config['transfer']:g}" if config["transfer"] else ""
    ood = f", {100 * config['strange']:g} % of them out-of-domain" if config["strange"] else ""
    power = config.get("student_evenness", 0.0)
    even = f", pixels weighted by the teachers' variance to the power {power:g}" if power else ""
    return f"from {start}, {epochs} epochs{transfer}{ood}{even}"


def _endd(_: Content, config: Content) -> str:
    aim = "the Normal-Wishart fitted to the members" if config["proxy"] else "members' likelihood"
    tempered = f"T = {config['temperature']:g}"
    if config["temperature"] > 1:
        tempered += f" annealed, tempering {config['tempering']}"
    return f"{aim}, {tempered}, excess at least {config['min_excess']:g}"


def _nwpn(_: Content, config: Content) -> str:
    rise = f"rising over {config['gamma_epochs']:g} epochs"
    match = f"prior matched to the training depths' {config['prior_match']}"
    weights = f"beta = {config['beta']:g}, gamma = {config['gamma']:g} {rise}"
    return f"{weights}, {match}{_without_structure(config)}"


# Subject, the paper's (its own words, or DenseDepth's public code where it says "unchanged"), ours.
_ROWS: tuple[tuple[str, str, Callable[[Content, Content], str]], ...] = (
    (
        "images for training / test",
        "NYU: DenseDepth's 50,000 / 654; KITTI: Eigen's split, 697 for test",
        _images,
    ),
    ("out-of-domain images", "numbers not given; also LSUN church", _ood_images),
    (
        "image size",
        "NYU 480 x 640; KITTI not given",
        lambda _, config: f"{config['height']} x {config['width']}, predictions half of it",
    ),
    ("encoder (ImageNet weights)", "DenseNet-169", lambda _, config: _ENCODERS[config["encoder"]]),
    (
        "up-sampling in the decoder",
        "bilinear, corners aligned",
        lambda *_: "bilinear, between pixel centres",
    ),
    ("seeds", "4, ensembles of 5", _seeds),
    ("length", "20 epochs of batches of 8 (DenseDepth's defaults)", _length),
    ("optimiser", "Adam, rate 1e-4, constant", _optimiser),
    ("dropout in the decoder", "none", _dropout),
    ("averaged weights", "none", _average),
    ("batch norms of the encoder", "those of each batch", lambda _, config: _NORMS[config["norm"]]),
    (
        "precision",
        "float32",
        lambda content, config: _PRECISIONS[
            "float32" if content["device"] == "cpu" else config["precision"]
        ],
    ),
    ("augmentation", "mirrored (0.5), channels swapped (0.25)", _augmentation),
    ("Single, members of ENSM", "likelihood", _gaussian),
    (
        "students (EnD2, EnD, MD-EnD)",
        "start and length not given; no out-of-domain images",
        _students,
    ),
    ("EnD2", "members' likelihood, T = 10 annealed", _endd),
    ("NWPN", "gamma = 0.05 rising over 5 epochs, 10 more epochs; beta not given", _nwpn),
    (
        "DER",
        "weight not given",
        lambda _, config: (
            f"evidence regulariser {config['coefficient']:g}{_without_structure(config)}"
        ),
    ),
    (
        "work",
        "not given",
        lambda content, _: f"{content['seconds'] / 60:,.0f} min of {content['device']}",
    ),
)


def setting(contents: Mapping[str, Content]) -> list[str]:
    """Write one table: subject, the paper's, ours for each set."""
    rows = [
        [what, paper, *(ours(content, content["config"]) for content in contents.values())]
        for what, paper, ours in _ROWS
    ]
    header = ["", "the paper", *(f"{TITLES[name]} here" for name in contents)]
    about = "The paper keeps DenseDepth's data, augmentation, optimisation and protocol; where it "
    about += "gives no number, DenseDepth's public code does. "
    if "nyu" in contents:
        about += "Our NYU is the labelled set, its depth in steps of 4 cm. "
    if "kitti" in contents:
        about += "Our KITTI is its road benchmark, whose depth is interpolated from LiDAR in the "
        about += "lower half of each image: smooth at edges, no more than 65 m. "
    lines = table(header, rows, left=len(header))
    return [f"{about}LSUN church images were not available.", *lines, *_protocols(contents)]


def _protocols(contents: Mapping[str, Content]) -> list[str]:
    """Describe the scoring of depth, as the results record it."""
    lines: list[str] = []
    protocols = {name: content["protocol"] for name, content in contents.items()}
    for name, protocol in protocols.items():
        crop = protocol["crop"]
        ranges = f"{protocol['closest_metres']:g} to {protocol['farthest_metres']:g} m"
        box = f"rows {crop['top']:.3f} to {crop['bottom']:.3f} of the height, columns "
        box += f"{crop['left']:.3f} to {crop['right']:.3f} of the width"
        below = protocol.get("limit_metres")
        limit = "" if below is None else f", targets below {below:g} m"
        lines.append(f"- {TITLES[name]}: {box}; predictions clipped to {ranges}{limit}.")
    first = next(iter(protocols.values()))
    return [
        f"Depth scores: {first['depth_scores']}. Scores of distributions: "
        f"{first['distribution_scores']}.",
        "",
        *lines,
    ]


def setting_in_short(contents: Mapping[str, Content], ours: Scores, paper: Scores) -> str:
    """Write sentences beside the goals: the distance of NYU and the students from the paper's."""
    content = contents.get("nyu")
    if content is None:
        return ""
    config = content["config"]
    found = [scores.mean("nyu", "EnD2", "delta1") for scores in (ours, paper)]
    text = (
        f"Our depth experiment {link('differs', SETTING)} from the paper's: NYU is "
        f"{content['n_train']:,} training images at {config['height']} x {config['width']} with "
        f"{_ENCODERS[config['encoder']]}, where the paper has 50,000 at 480 x 640 with DenseNet-169"
    )
    if found[0] is not None and found[1] is not None:
        text += f" (EnD2's δ1: {shown(found[0], 3)} here, {shown(found[1], 3)} in the paper)"
    share = config.get("strange", 0.0)
    ood = f", and students see {100 * share:g} % made-up out-of-domain images, the paper's none"
    return f"{text}{ood if share else ''}."
