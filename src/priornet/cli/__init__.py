"""The command line: each command parses, calls one function, prints, and returns an exit code.

A command's module is imported when the command is called or its help is shown, and heavy packages
inside the command. Beside the program stands what a package needs that adds commands of its own.
"""

from priornet.cli.inputs import LARGEST_SEED, AsJson, Method, Overwrite, Quiet
from priornet.cli.outputs import PAGE, RESULTS, check_outputs, figure_paths, make_folder
from priornet.cli.program import Terminated, add_lazily, app, main
from priornet.cli.terminal import coloured, method_table, print_lines
from priornet.messages import InputError, blamed_on, one_line

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
