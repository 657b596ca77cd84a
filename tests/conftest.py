"""Options and fixtures shared by every test: the same suite runs on another device or precision."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    import torch

# The same examples on every run and every machine; the time of one example is not what is tested.
hypothesis.settings.register_profile("priornet", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("priornet")


# Tests about numbers, whose tensors follow --device where they do not say where they lie.
NUMERICAL = (
    *("distributions", "losses", "special", "transforms"),
    *("nn/test_contract.py", "nn/test_heads.py"),
    *("test_extremes.py", "test_precision.py", "test_priors.py"),
    *("test_uncertainty.py", "test_vectors.py"),
)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No file of a test is to outlive its machine, and a busy disk takes 10 ms for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cpu", help="what the `device` fixture gives: cpu, cuda")
    parser.addoption(
        "--dtype",
        default="float64",
        choices=("float32", "float64"),
        help="what the `dtype` fixture gives",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Give each process one thread, also those that tests start: xdist keeps the cores busy.

    xdist's controller runs no test and so is spared the import of torch.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    config.addinivalue_line("markers", "compiles: calls torch.compile; see tests/_compile.py")
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        return
    gc.disable()  # until everything is collected
    import torch

    torch.set_num_threads(1)
    device = torch.device(str(config.getoption("--device")))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise pytest.UsageError(f"--device {device}: torch sees no CUDA device on this machine")


def pytest_collection_finish() -> None:
    """Spare the garbage collector twenty thousand tests that stay, and all that was imported."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    import torch

    return torch.device(str(request.config.getoption("--device")))


@pytest.fixture(scope="session")
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    import torch

    return getattr(torch, str(request.config.getoption("--dtype")))


@pytest.fixture(autouse=True)
def _on_the_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put the tensors of numerical tests on the device under test, unless a test names another.

    Tests of torch.compile say where: the compiler would trace the mode too, and cannot.
    """
    import torch

    where = torch.device(str(request.config.getoption("--device")))
    tests = Path(__file__).parent
    if (
        where.type == "cpu"  # the mode sees, and slows, every call
        or request.node.get_closest_marker("compiles") is not None
        or not any(request.path.is_relative_to(tests / name) for name in NUMERICAL)
    ):
        yield
        return
    with where:
        yield


@pytest.fixture
def generator(request: pytest.FixtureRequest, _on_the_device: None) -> torch.Generator:
    """A freshly seeded generator, on the device where the test builds its tensors."""
    import torch

    asked = "device" in request.fixturenames
    device = request.getfixturevalue("device") if asked else torch.get_default_device()
    return torch.Generator(device).manual_seed(0)


@pytest.fixture(autouse=True)
def _argument_checks_are_on() -> None:
    """Torch's default: torch.compile turns it off for the rest of the process, whoever calls it."""
    import torch

    torch.distributions.Distribution.set_default_validate_args(True)


@pytest.fixture(scope="session")
def without_torchmetrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that hides torchmetrics from those who look in it first.

    Where all of Lightning is installed, Fabric loads torchmetrics, and with it Transformers and
    SciPy, to look at its version: more work than what a process is started for.
    """
    folder = tmp_path_factory.mktemp("path")
    (folder / "torchmetrics.py").write_text('raise ImportError("not on this machine")\n')
    return str(folder)


@pytest.fixture(scope="module")
def fabric_alone(without_torchmetrics: str) -> Iterator[None]:
    """Lightning Fabric as the extra for depth installs it, here and in the processes of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [without_torchmetrics, *sys.path])
        patch.setenv("PYTHONPATH", without_torchmetrics, prepend=os.pathsep)
        yield


@pytest.fixture
def quick_students(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the code of a page."""
    from _students import hurry

    hurry(monkeypatch)


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the real UCI tables, also as ``$PRIORNET_DATA``."""
    from _uci_files import REAL

    if not REAL.is_dir():
        pytest.skip("the real tables are not here (../shared/data/uci beside the repository)")
    monkeypatch.setenv("PRIORNET_DATA", str(REAL))
    return REAL


@pytest.fixture(scope="session")
def real_depth() -> Path:
    """The folder of the real photographs with depth."""
    folder = Path(__file__).parents[2] / "shared" / "data" / "depth"
    if not folder.is_dir():
        pytest.skip("the real images are not here (../shared/data/depth beside the repository)")
    return folder
