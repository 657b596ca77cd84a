"""The command line: each command parses, calls one function, prints, and returns an exit code.

A command's module is imported when the command is called or its help is shown, and heavy packages
inside the command. Beside the program stands what a package needs that adds commands of its own.
"""

from typing import TYPE_CHECKING

from priornet._lazy import lazy_names

if TYPE_CHECKING:
    from priornet.cli.errors import InputError, blamed_on, one_line
    from priornet.cli.kinds import PAGE, RESULTS
    from priornet.cli.options import LARGEST_SEED, AsJson, Method, Overwrite, Quiet
    from priornet.cli.output import coloured, method_table, print_lines
    from priornet.cli.outputs import check_outputs, figure_paths, make_folder
    from priornet.cli.program import add_lazily, app, main
    from priornet.cli.sigterm import Terminated

__all__ = [
    "LARGEST_SEED",
    "PAGE",
    "RESULTS",
    "AsJson",
    "InputError",
    "Method",
    "Overwrite",
    "Quiet",
    "Terminated",
    "add_lazily",
    "app",
    "blamed_on",
    "check_outputs",
    "coloured",
    "figure_paths",
    "main",
    "make_folder",
    "method_table",
    "one_line",
    "print_lines",
]

_HOMES = {
    **dict.fromkeys(("InputError", "blamed_on", "one_line"), "errors"),
    **dict.fromkeys(("PAGE", "RESULTS"), "kinds"),
    **dict.fromkeys(("LARGEST_SEED", "AsJson", "Method", "Overwrite", "Quiet"), "options"),
    **dict.fromkeys(("coloured", "method_table", "print_lines"), "output"),
    **dict.fromkeys(("check_outputs", "figure_paths", "make_folder"), "outputs"),
    **dict.fromkeys(("add_lazily", "app", "main"), "program"),
    "Terminated": "sigterm",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
