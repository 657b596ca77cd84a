"""``python -m priornet_paper.depth``: the experiment where there is no Typer.

It needs torch, NumPy, Pillow, safetensors and Lightning Fabric, nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from priornet_paper.depth.options import OptionError, Options, run_options

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
        found = run_options(options, _Log().report)
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
        flag = field.metadata.get("flag", f"--{field.name.replace('_', '-')}")
        more: dict[str, Any] = {"dest": field.name, "help": field.metadata["help"]}
        if hints[field.name] is bool:
            more |= {"action": "store_true"}
        elif field.default == ():
            more |= {"action": "append", "default": []}
        elif field.default is MISSING:
            more |= {"required": True, "type": hints[field.name]}
        else:
            kind = next(iter(get_args(hints[field.name])), hints[field.name])
            more |= {"default": field.default, "choices": field.metadata.get("choices")}
            more |= {"type": _at_least(kind, field.metadata.get("least"))}
            more["help"] += f" [default: {field.default}]" if field.default else ""
        parser.add_argument(flag, **more)
    given: dict[str, Any] = vars(parser.parse_args(arguments))
    for name in ("ood", "settings"):
        given[name] = tuple(given[name])
    return Options(**given)


def _at_least(kind: Any, least: float | None) -> Any:
    """Make a parser of numbers that refuses smaller ones."""
    if least is None:
        return kind

    def parsed(text: str) -> Any:
        if kind(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}; got {text}")
        return kind(text)

    return parsed


class _Log:
    """A line per epoch of each network, or fewer if epochs are short."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._printed: dict[str, float] = {}

    def report(self, event: Event) -> None:
        """Print a message, or an epoch."""
        if event.message:
            _print(event.message)
            return
        now = time.monotonic()
        if event.epoch == event.n_epochs or now - self._printed.get(event.key, -1e9) > _PAUSE:
            self._printed[event.key] = now
            _print(
                f"{now - self._started:7.1f} s  {event.key:<18} epoch {event.epoch:>3}"
                f"/{event.n_epochs}  loss {event.loss:.4f}"
            )


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
