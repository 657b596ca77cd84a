"""Fixtures of the commands' tests, and processes that start at once."""

import multiprocessing
import os
from multiprocessing import forkserver

import pytest

from _commands import call, closed_folder, csv, models, refused, sets, table
from _uci_files import REAL
from priornet_paper.runs import jobs

__all__ = ["call", "closed_folder", "csv", "models", "refused", "sets", "table"]


@pytest.fixture(scope="session")
def forked_workers(without_torchmetrics):
    """Fork the workers of jobs from a process that has imported torch: an import takes seconds.

    That process keeps the environment that it starts with. ``runs/test_jobs.py`` starts workers as
    the experiments do.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", without_torchmetrics, prepend=os.pathsep)
        patch.setenv("PRIORNET_DATA", str(REAL))
        patch.delenv("OMP_NUM_THREADS", raising=False)
        known = ["lightning_fabric", "priornet_paper.depth.run", "priornet_paper.uci"]
        multiprocessing.set_forkserver_preload(known)
        forkserver.ensure_running()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "_START_METHOD", "forkserver")
        yield
