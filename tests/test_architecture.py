"""Imports point down the layers, and third-party packages stay where they belong.

The rules are read off the source with ``ast``; nothing is imported. Planted violations show that
each rule bites.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"

# Bottom to top. A layer imports what stands above it in this list; names on one line are strangers.
LAYERS = (
    ("_version", "_lazy"),
    ("checks", "messages", "methods", "writing"),
    ("special",),
    ("distributions",),
    ("uncertainty", "priors"),
    ("losses",),
    ("nn",),
    ("metrics",),
    ("tables",),
    ("training",),
    ("distill",),
    ("estimators",),
    ("evaluation",),
    ("report",),
    ("export",),
    ("depth",),
    ("demo",),
    ("cli",),
    ("__main__",),
)
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}

# The paper's package stands on top of the library, which never imports it.
PAPER_LAYERS = (("runs",), ("synthetic", "uci", "depth"), ("page",), ("commands",))
PAPER_LEVEL = {unit: level for level, units in enumerate(PAPER_LAYERS) for unit in units}

# The paper's package imports what the packages of priornet list in `__all__`, and this helper for
# imports: both packages load their names lazily, and name the extra of a package that is missing.
SHARED = {"priornet._lazy"}

# Third-party packages that only some modules may import.
HOMES = {
    "matplotlib": ("priornet.report", "priornet.depth.depth_maps", "priornet_paper"),
    "plotly": ("priornet.report",),
    "sklearn": ("priornet.estimators", "priornet.tables", "priornet.distill", "priornet_paper"),
    "threadpoolctl": ("priornet.tables.boosting",),
    "typer": ("priornet.cli", "priornet_paper"),
    "rich": ("priornet.cli", "priornet.training.stack_training", "priornet_paper"),
    "pandas": (
        *("priornet.tables", "priornet.estimators", "priornet.evaluation"),
        "priornet_paper",
    ),
    "pyarrow": (
        *("priornet.tables", "priornet.evaluation", "priornet.depth.photographs"),
        *("priornet.cli", "priornet_paper"),
    ),
    "safetensors": ("priornet.estimators", "priornet.nn.weights"),
    "triton": ("priornet.nn.dense_depth.joining_kernels",),
}
# Not declared: torch brings it where it is of use, and its home is imported only if it is there.
WITH_TORCH = {"triton"}

# Calls that change the process for everybody; only the outermost layers may make them, and the one
# module that limits threads for a while and puts them back.
GLOBAL_STATE = {
    "logging.basicConfig",
    "np.random.seed",
    "numpy.random.seed",
    "plt.show",
    "random.seed",
    "torch.manual_seed",
    "torch.set_default_device",
    "torch.set_default_dtype",
    "torch.set_num_threads",
}

IMPORT_NAMES = {"scikit-learn": "sklearn", "pillow": "PIL"}


def declared_packages() -> tuple[set[str], set[str]]:
    """Import names of the runtime dependencies, and of those that only an extra brings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    def import_names(requirements: list[str]) -> set[str]:
        names = {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}
        return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}

    runtime = import_names(project["dependencies"])
    optional = [r for name, rs in extras.items() if name not in ("test", "dev") for r in rs]
    return runtime, import_names(optional) - runtime


@dataclass
class Scan(ast.NodeVisitor):
    """The imports of one module, and for each if it waits until a function is called."""

    package: str
    imports: list[tuple[int, str, bool]] = field(default_factory=list)
    calls: list[tuple[int, str]] = field(default_factory=list)
    deferred: int = 0

    def _add(self, node: ast.AST, name: str) -> None:
        self.imports.append((getattr(node, "lineno", 0), name, self.deferred > 0))

    def _visit_deferred(self, nodes: list[ast.stmt]) -> None:
        self.deferred += 1
        for node in nodes:
            self.visit(node)
        self.deferred -= 1

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_deferred(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            self._visit_deferred(node.body)
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        parents = self.package.split(".")
        above = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
        base = ".".join(part for part in (above, node.module) if part)
        for alias in node.names:
            self._add(node, f"{base}.{alias.name}")

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        self.calls.append((node.lineno, called))
        argument = node.args[0] if node.args else None
        dynamic = called.endswith(("import_module", "__import__"))
        if dynamic and isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            self._add(node, argument.value)
        self.generic_visit(node)


def upward(unit: str, name: str) -> str | None:
    """Give the reason why the layer ``unit`` may not import ``name`` of priornet, or None."""
    target = name.split(".")[1] if "." in name else ""
    target = "_version" if target == "__version__" else target
    if target not in LEVEL:
        return f"`{name}` is in no layer: import the module that defines it, or add it to LAYERS"
    if target != unit and LEVEL[target] >= LEVEL[unit]:
        return f"`{name}` is not below `{unit}`"
    return None


def upward_in_paper(unit: str, name: str) -> str | None:
    """Give the reason why a unit of the paper's package may not import ``name`` of it, or None."""
    target = name.split(".")[1]
    if target not in PAPER_LEVEL:
        return f"`{name}` is in no layer of the paper's package"
    if target != unit and PAPER_LEVEL[target] >= PAPER_LEVEL[unit]:
        return f"`{name}` is not below `{unit}`"
    return None


@functools.cache
def exported(module: str) -> frozenset[str]:
    """Return the ``__all__`` of a package of priornet, or of a module at its top."""
    path = SRC.joinpath(*module.split("."))
    files = [path / "__init__.py", *([path.with_suffix(".py")] if module.count(".") == 1 else [])]
    for node in (node for f in files if f.is_file() for node in ast.parse(f.read_text()).body):
        names = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(name, ast.Name) and name.id == "__all__" for name in names):
            return frozenset(ast.literal_eval(getattr(node, "value")))  # noqa: B009
    return frozenset()


def private(name: str) -> str | None:
    """Give the reason why the paper's package may not import ``name`` of priornet, or None."""
    module, _, own = name.rpartition(".")
    if not module or module in SHARED or own in exported(module):
        return None
    return f"`{name}` is in no package's `__all__`: open it there, with a docstring, or do without"


def misplaced(
    module: str, name: str, waits: bool, runtime: set[str], extra: set[str]
) -> str | None:
    """Give the reason why ``module`` may not import the third-party ``name``, or None."""
    package = name.split(".")[0]
    homes = HOMES.get(package, ("priornet", "priornet_paper"))
    if not any(module == home or module.startswith(f"{home}.") for home in homes):
        return f"`{package}` belongs in {', '.join(homes)} only"
    if package in extra and not waits:
        return f"`{package}` is an extra: import it inside the function that needs it"
    if package not in runtime | extra | WITH_TORCH:
        return f"`{package}` is not a declared dependency"
    return None


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """List everything in one module's source that breaks a rule, as ``line: reason``."""
    scan = Scan(module if is_package else module.rpartition(".")[0])
    scan.visit(ast.parse(source))
    runtime, extra = declared_packages()
    is_root = module == "priornet"
    in_paper = module.startswith("priornet_paper")
    unit = module.partition(".")[2].partition(".")[0]
    if unit and unit not in (PAPER_LEVEL if in_paper else LEVEL):
        return [f"0: `{unit}` is in no layer: add it to LAYERS"]

    found: list[tuple[int, str | None]] = []
    for line, name, waits in scan.imports:
        package = name.split(".")[0]
        if package in sys.stdlib_module_names:
            continue
        if is_root:  # it lists the public names for type checkers and loads them lazily
            allowed = waits or name.startswith(("priornet._version.", "priornet._lazy."))
            found.append((line, None if allowed else f"`{name}` must load lazily"))
        elif package == "priornet_paper":
            reason = upward_in_paper(unit, name) if in_paper else "the library never imports it"
            found.append((line, reason))
        elif package == "priornet":
            found.append((line, private(name) if in_paper else upward(unit, name)))
        else:
            found.append((line, misplaced(module, name, waits, runtime, extra)))
    if unit not in ("cli", "__main__") and not in_paper and module != "priornet.training.device":
        touched = [(line, name) for line, name in scan.calls if name in GLOBAL_STATE]
        found += [(line, f"`{name}` changes global state") for line, name in touched]
    return [f"{line}: {reason}" for line, reason in found if reason]


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = sorted(SRC.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_point_down(path):
    is_package = path.name == "__init__.py"
    found = violations(module_name(path), path.read_text(), is_package=is_package)
    assert not found, "\n".join(f"{path.relative_to(ROOT)}:{reason}" for reason in found)


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name == "__init__.py"], ids=module_name)
def test_packages_list_their_exports(path):
    targets = [
        target.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    assert "__all__" in targets


def test_no_module_is_named_utils():
    names = {path.stem for path in SOURCES}
    assert not names & {"util", "utils", "helpers", "misc", "common"}


def of_torchvision(source: str) -> list[int]:
    """Lines that import it: at once, later, or by a name that something else may import."""
    tree, name = ast.parse(source), re.compile(r"torchvision(\.\w+)*")
    scan = Scan("priornet")
    scan.visit(tree)
    imported = [line for line, found, _ in scan.imports if name.fullmatch(found)]
    named = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and name.fullmatch(str(node.value))
    ]
    return sorted({*imported, *named})


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_torchvision_is_not_imported(path):
    """Encoders are our own, so that any build of torch will do: it must not come with an extra."""
    assert of_torchvision(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import torchvision.models as models",
        "from torchvision import models",
        "def f():\n    from torchvision.models import densenet169",
        "if TYPE_CHECKING:\n    import torch, torchvision",
        'import_module("torchvision.models")',
        'for package in ("timm", "torchvision"):\n    import_module(package)',
        'LAZY = {"models": "torchvision.models"}',
    ],
)
def test_planted_torchvision_is_caught(source):
    assert len(of_torchvision(source)) == 1
    assert of_torchvision('"""With torchvision\'s names."""\nimport torch') == []


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("priornet.special.gamma", "from priornet.losses import reverse_kl", "not below"),
        ("priornet.special.gamma", "from priornet import nn", "not below"),
        ("priornet.special.gamma", "import priornet.nn.heads as heads", "not below"),
        ("priornet.special.gamma", "from .. import nn", "not below"),
        ("priornet.special.gamma", "from ..nn.heads import MLP", "not below"),
        ("priornet.special.gamma", "def f():\n    from priornet import nn", "not below"),
        ("priornet.special.gamma", "if TYPE_CHECKING:\n    from priornet import nn", "not below"),
        ("priornet.special.gamma", "import_module('priornet.nn')", "not below"),
        ("priornet.priors", "from priornet.uncertainty import uncertainty", "not below"),
        ("priornet.nn.heads", "import priornet", "in no layer"),
        ("priornet.nn.heads", "from priornet import NormalWishart", "in no layer"),
        ("priornet.novelty", "import torch", "in no layer"),
        ("priornet.metrics.ranking", "import matplotlib.pyplot as plt", "belongs in"),
        ("priornet.report_tools", "import matplotlib", "in no layer"),
        ("priornet.demo", "from matplotlib import pyplot", "belongs in"),
        ("priornet.training.loop", "from rich.progress import Progress", "belongs in"),
        ("priornet.demo", "import typer", "belongs in"),
        ("priornet.demo", "from priornet_paper.uci import run", "never imports"),
        ("priornet.demo", "def f():\n    import priornet_paper.uci.run", "never imports"),
        ("priornet_paper.uci.run", "from priornet_paper.page import page", "not below"),
        ("priornet_paper.uci.run", "from priornet_paper.depth import run", "not below"),
        ("priornet_paper.novelty", "import torch", "in no layer"),
        ("priornet_paper.uci.run", "from priornet.evaluation.results import summary", "`__all__`"),
        ("priornet_paper.uci.run", "from priornet.evaluation import scored_files", "`__all__`"),
        (
            "priornet_paper.uci.run",
            "def f():\n    from priornet.cli.terminal import progress",
            "__all__",
        ),
        ("priornet_paper.uci.run", "import priornet.nn.heads", "`__all__`"),
        ("priornet_paper.uci.run", "from priornet.nn.heads import GaussianHead", "`__all__`"),
        ("priornet_paper.uci.run", "from priornet.methods import _COLOURS", "`__all__`"),
        ("priornet_paper.uci.run", "from priornet._version import __version__", "`__all__`"),
        ("priornet.nn.heads", "from sklearn.base import BaseEstimator", "belongs in"),
        ("priornet.special.gamma", "import scipy.special", "not a declared dependency"),
        ("priornet.nn.heads", "def f():\n    torch.manual_seed(0)", "global state"),
        ("priornet.nn.stacked", "torch.set_default_dtype(torch.float64)", "global state"),
        ("priornet", "from priornet.distributions import NormalWishart", "load lazily"),
        ("priornet", "import torch", "load lazily"),
    ],
)
def test_planted_violation_is_caught(module, source, reason):
    found = violations(module, source, is_package=module == "priornet")
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("priornet.losses.reverse_kl", "from priornet.priors import semi_informative_prior"),
        ("priornet.nn.heads", "from priornet.distributions import NormalWishart"),
        ("priornet.distributions.kl", "from .normal_wishart import NormalWishart"),
        ("priornet_paper.synthetic.run", "from priornet import __version__, losses"),
        ("priornet.special.gamma", "import math\nimport torch\nfrom torch import Tensor"),
        ("priornet.report.curves", "from matplotlib.figure import Figure"),
        ("priornet.training.stack_training", "from rich.progress import Progress"),
        ("priornet_paper.commands", "import typer\nfrom priornet_paper.uci import run"),
        ("priornet_paper.page.figures", "from matplotlib.figure import Figure"),
        ("priornet_paper.synthetic.run", "torch.manual_seed(0)"),
        ("priornet_paper.uci.run", "from priornet.evaluation import summary, write_results"),
        ("priornet_paper.uci.run", "from priornet.methods import METHODS"),
        ("priornet_paper.uci", "from priornet._lazy import lazy_names"),
        ("priornet", "if TYPE_CHECKING:\n    from priornet import nn"),
        ("priornet", "from priornet._version import __version__"),
    ],
)
def test_lawful_import_passes(module, source):
    assert violations(module, source, is_package=module == "priornet") == []


@pytest.mark.parametrize("waits", [True, False])
def test_extras_load_inside_the_function_that_needs_them(waits):
    reason = misplaced("priornet.tables.big", "ray.data", waits, {"torch"}, {"ray"})
    assert (reason is None) == waits


def test_no_test_measures_what_something_takes():
    """Other work on the machine would decide; times stand in benchmarks."""
    clocks = re.compile(r"\b(process_time|perf_counter|getrusage|timeit)")
    here = Path(__file__)
    found = [path for path in here.parent.rglob("test_*.py") if clocks.search(path.read_text())]
    assert found == [here]
