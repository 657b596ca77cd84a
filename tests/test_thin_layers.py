"""Pages and commands stay thin: ``report`` computes nothing, ``cli`` holds no logic.

The rules are read off the source with ``ast``. Planted violations show that each rule bites.
"""

from __future__ import annotations

import ast
import sys

import pytest

from test_architecture import SOURCES, Scan, module_name

# Modules of priornet that each layer may use, and third-party packages.
USED = {
    "report": {"_lazy", "_version", "evaluation", "methods", "report", "writing"},
    "cli": {"_version", "cli", "messages", "methods"},
}
PACKAGES = {"report": {"matplotlib", "plotly"}, "cli": {"typer", "rich", "pyarrow"}}
MATHEMATICS = {"math", "cmath", "statistics", "random", "fractions"}

ARITHMETIC = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.Sub)
REDUCTIONS = {"mean", "std", "var", "sum", "median", "quantile", "cumsum", "min", "max", "dot"}


def is_count(node: ast.expr) -> bool:
    """Tell if a number counts something: the length of a list, or a literal."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "len"
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def arithmetic(tree: ast.Module) -> list[tuple[int, str]]:
    """List arithmetic other than joining, and counting of what is left out of a list."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC):
            counts = is_count(node.left) or is_count(node.right)
            if not (isinstance(node.op, ast.Sub) and counts):
                found.append((node.lineno, f"`{ast.unparse(node)}` computes"))
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in REDUCTIONS:
                found.append((node.lineno, f"`{name}` computes"))
    return found


def public_functions(tree: ast.Module) -> list[str]:
    """Name the functions of a module that others may call."""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return [function.name for function in functions if not function.name.startswith("_")]


def commands() -> set[str]:
    """Name the modules that hold a command each."""
    from priornet.cli.program import COMMANDS

    return {f"priornet.cli.{name}" for name in COMMANDS}


def violations(module: str, source: str) -> list[str]:
    """List everything in one module of ``report`` or ``cli`` that does not belong there."""
    layer, tree = module.split(".")[1], ast.parse(source)
    scan = Scan(module.rpartition(".")[0])
    scan.visit(tree)
    found: list[tuple[int, str]] = []
    for line, name, waits in scan.imports:
        package, _, rest = name.partition(".")
        if package == "priornet":
            # A command calls the library, but imports it when it is called.
            allowed = rest.split(".")[0] in USED[layer] or (layer == "cli" and waits)
        elif package in sys.stdlib_module_names:
            allowed = package not in MATHEMATICS
        else:
            allowed = package in PACKAGES[layer]
        if not allowed:
            found.append((line, f"`{name}` is not for `{layer}`"))
    if layer == "report":
        found += arithmetic(tree)
    if module in commands() and public_functions(tree) != [module.rpartition(".")[2]]:
        found.append((1, f"`{module}` is one function, its command"))
    return [f"{line}: {reason}" for line, reason in sorted(found)]


THIN = [path for path in SOURCES if module_name(path).split(".")[:2][-1] in USED]


@pytest.mark.parametrize("path", THIN, ids=module_name)
def test_pages_and_commands_are_thin(path):
    name = module_name(path) + (".__init__" if path.name == "__init__.py" else "")
    assert violations(name, path.read_text()) == []


def test_every_module_of_both_layers_is_read():
    assert {module_name(path).split(".")[1] for path in THIN} == set(USED)
    assert commands() <= {module_name(path) for path in THIN}


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("priornet.report.charts", "import numpy as np", "not for `report`"),
        ("priornet.report.charts", "def f():\n    import torch", "not for `report`"),
        ("priornet.report.charts", "from math import sqrt", "not for `report`"),
        ("priornet.report.charts", "from priornet.metrics import LEVELS", "not for `report`"),
        ("priornet.report.charts", "def f():\n    from priornet import nn", "not for `report`"),
        ("priornet.report.charts", "low = mean - deviation", "computes"),
        ("priornet.report.charts", "area = height * width", "computes"),
        ("priornet.report.charts", "share = values.mean()", "computes"),
        ("priornet.report.charts", "top = max(values)", "computes"),
        ("priornet.cli.fit", "import numpy\ndef fit(): ...", "not for `cli`"),
        ("priornet.cli.fit", "def fit():\n    import pandas", "not for `cli`"),
        ("priornet.cli.fit", "import statistics\ndef fit(): ...", "not for `cli`"),
        ("priornet.cli.fit", "from priornet.tables import x\ndef fit(): ...", "not for `cli`"),
        ("priornet.cli.fit", "def fit(): ...\ndef train(): ...", "one function"),
    ],
)
def test_planted_violation_is_caught(module, source, reason):
    found = violations(module, source)
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("priornet.report.charts", "first = letters[: most - 1]"),
        ("priornet.report.tables", 'more = f"and {len(names) - MOST} more"'),
        ("priornet.report.curves", "from matplotlib.figure import Figure"),
        ("priornet.report.charts", "from priornet.evaluation.numbers import band"),
        ("priornet.cli.fit", "def fit():\n    from priornet.evaluation import fit_file"),
        ("priornet.cli.terminal", "def f():\n    from rich.table import Table"),
    ],
)
def test_lawful_source_passes(module, source):
    assert violations(module, source) == []
