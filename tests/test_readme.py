"""What the README says can be typed works when typed."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    assert BLOCKS, "the README shows no Python code"
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__readme__"}
    with torch.random.fork_rng(devices=[]):
        for number, block in enumerate(BLOCKS, start=1):
            exec(compile(block, f"README.md python block {number}", "exec"), namespace)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z]+)\b(?=[`\n ])", README))))
def test_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:|#)([^)#]+)", README))))
def test_local_link_leads_somewhere(link):
    assert (ROOT / link).exists()
