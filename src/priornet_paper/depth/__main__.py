"""``python -m priornet_paper.depth``: the experiment where there is no Typer.

It needs torch, NumPy, Pillow, safetensors and Lightning Fabric, nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from priornet_paper.depth.options import OptionError, Options, prepare

if TYPE_CHECKING:
    from priornet_paper.depth.tasks import Event

_PAUSE = 15.0  # seconds between two lines about one network
_INTERRUPTED = 130  # as shells count an interruption by the user


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment.

    Returns:
        0, also if the time was up first; 2 for what cannot be run; 1 if the machine failed.
    """
    options = parse(arguments)
    try:
        found = prepare(options)(_reporter())
    except KeyboardInterrupt:
        sys.stderr.write(f"{options.unfinished('Interrupted.')}\n")
        return _INTERRUPTED
    except (OptionError, OSError) as error:
        sys.stderr.write(f"Error: {' '.join(str(error).split())}\n")
        return 1 if isinstance(error, OSError) else 2
    if found is None:
        _print(options.unfinished("The time is up."))
    elif found:  # not a process that helped another one
        for line in (*_summary(found), f"results: {options.path}"):
            _print(line)
    return 0


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Parse a command line into options."""
    parser = argparse.ArgumentParser("python -m priornet_paper.depth", description=__doc__)
    hints = get_type_hints(Options)
    for field in fields(Options):
        about, hint = field.metadata, hints[field.name]
        more: dict[str, Any] = {"dest": field.name, "help": about["help"]}
        if hint is bool:
            more |= {"action": "store_true"}
        elif field.default == ():
            more |= {"action": "append", "default": []}
        elif get_origin(hint) is Literal:
            more |= {"default": field.default, "choices": get_args(hint)}
        else:
            kind = next(iter(get_args(hint)), hint)
            more |= {"required": field.default is MISSING, "default": field.default}
            more |= {"type": _at_least(kind, about["least"]) if "least" in about else kind}
        if more.get("default") and field.default is not MISSING:
            more["help"] += f" [default: {field.default}]"
        parser.add_argument(about.get("flag", f"--{field.name.replace('_', '-')}"), **more)
    given: dict[str, Any] = vars(parser.parse_args(arguments))
    for field in fields(Options):
        if field.default == ():
            given[field.name] = tuple(given[field.name])
    return Options(**given)


def _at_least(kind: Any, least: float) -> Callable[[str], Any]:
    """Make a parser of numbers that refuses smaller ones."""

    def parsed(text: str) -> Any:
        if kind(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}; got {text}")
        return kind(text)

    return parsed


def _reporter() -> Callable[[Event], None]:
    """Make a printer of messages and epochs: a line per epoch, or fewer if epochs are short."""
    started, printed = time.monotonic(), dict[str, float]()

    def report(event: Event) -> None:
        now = time.monotonic()
        if event.message:
            _print(event.message)
        elif event.epoch == event.n_epochs or now - printed.get(event.key, -1e9) > _PAUSE:
            printed[event.key] = now
            _print(
                f"{now - started:7.1f} s  {event.key:<18} epoch {event.epoch:>3}"
                f"/{event.n_epochs}  loss {event.loss:.4f}"
            )

    return report


def _summary(found: dict[str, Any]) -> list[str]:
    """Format a line per method with its means over seeds."""
    lines: list[str] = []
    for name, scores in {**found["methods"], **found["variants"]}.items():
        shown = [
            f"{metric} {scores[metric]['mean']:.4f}"
            for metric in ("delta1", "rel", "rmse", "log10", "nll")
            if metric in scores and scores[metric]["mean"] is not None
        ]
        for other, aucs in scores.get("ood_auc", {}).items():
            means = (f"{m} {v['mean']:.3f}" for m, v in aucs.items() if v["mean"] is not None)
            shown.append(f"{other}: {' '.join(means)}")
        lines.append(f"{name:<12} {'  '.join(shown)}")
    return lines


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
