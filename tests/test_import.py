"""Importing priornet loads nothing heavy and leaves the process as it was."""

import json
import subprocess
import sys

import pytest

# Every public name but the tool for tables, so that lazily loaded modules are held to the same
# promises. The estimators bring scikit-learn along, which is heavy, and sets a warning filter.
ESTIMATORS = "name for name in priornet.__all__ if 'Regressor' in name"
TABLES = f"{{'estimators', 'export', 'load', *({ESTIMATORS})}}"
LOAD_ALL = (
    "import priornet; "
    f"[getattr(priornet, name) for name in priornet.__all__ if name not in {TABLES}]"
)


def run(code):
    """Run code in a fresh interpreter and return the JSON it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_bare_import_loads_nothing_heavy():
    loaded = run("import json, sys, priornet; print(json.dumps(sorted(sys.modules)))")
    assert not {"torch", "numpy"} & set(loaded)


@pytest.fixture(scope="module")
def loaded():
    """Modules that every public name loads in a process that has torch."""
    return run(
        "import json, sys, torch\n"
        "before = set(sys.modules)\n"
        f"{LOAD_ALL}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )


def test_no_public_name_loads_a_rare_dependency(loaded):
    packages = {name.split(".")[0] for name in loaded}
    rare = {"matplotlib", "pandas", "plotly", "ray", "rich", "scipy", "sklearn", "typer"}
    assert "priornet" in packages
    assert not packages & rare


SNAPSHOT = """
import json, logging, os, random, sys, warnings
import numpy
import torch

def snapshot():
    root = logging.getLogger()
    ours = logging.getLogger("priornet")
    return {
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(torch.get_default_device()),
        "threads": torch.get_num_threads(),
        "grad mode": torch.is_grad_enabled(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "validate args": torch.distributions.Distribution._validate_args,
        "torch rng": torch.get_rng_state().tolist(),
        "numpy rng": repr(numpy.random.get_state()),
        "python rng": repr(random.getstate()),
        "numpy errors": repr(numpy.geterr()),
        "warning filters": repr(warnings.filters),
        "root handlers": [repr(root.handlers), root.level, root.disabled],
        "our handlers": [repr(ours.handlers), ours.level, ours.propagate],
        "environment": dict(os.environ),
        "hooks": [repr(sys.excepthook), repr(sys.displayhook), repr(sys.stdout)],
    }

def changed():
    global before
    after = snapshot()
    names = [name for name in before if before[name] != after[name]]
    before = after
    return names

before = snapshot()
"""

PLANTED = {
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "threads": "torch.set_num_threads(torch.get_num_threads() + 1)",
    "torch rng": "torch.manual_seed(1)",
    "numpy rng": "numpy.random.seed(1)",
    "warning filters": "warnings.simplefilter('ignore')",
    "root handlers": "logging.basicConfig()",
}


@pytest.fixture(scope="module")
def changes():
    """Return what loading every name changed, and then the changes that were planted."""
    planted = "; ".join(PLANTED.values())
    return run(
        f"{SNAPSHOT}{LOAD_ALL}\nloading = changed()\n"
        f"{planted}\nprint(json.dumps({{'loading': loading, 'planting': changed()}}))"
    )


def test_loading_every_name_changes_no_global_state(changes):
    assert changes["loading"] == []


def test_snapshot_notices_planted_changes(changes):
    assert set(changes["planting"]) == set(PLANTED)


def test_submodules_are_there_after_importing_the_package():
    code = "import priornet; priornet.export.to_onnx; priornet.report.write_report; print('true')"
    assert run(code)


def test_unknown_name_raises_attribute_error():
    import priornet

    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = priornet.nonsense  # pyright: ignore[reportAttributeAccessIssue] the point of the test


def test_dir_lists_what_is_not_loaded_yet():
    code = "import json, priornet; print(json.dumps([dir(priornet), priornet.__all__]))"
    listed, public = run(code)
    assert set(public) <= set(listed)
