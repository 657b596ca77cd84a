"""Results folders made by hand, in the form that the experiments write."""

import json

import pytest

from _depth_results import depth_content
from _results import CONFIG, content


@pytest.fixture
def folder(tmp_path):
    """Make an empty results folder, to put runs into."""

    class Folder:
        path = tmp_path / "results"

        def put(self, dataset, methods, kind="paper", again=0, **more):
            suffix = "" if kind == "paper" else f".{kind}"
            preset = "paper" if kind == "paper" else "beyond"
            if kind == "splits":
                more.setdefault("config", {**CONFIG, "splits": "canonical"})
            below = f"uci/again/{again}" if again else "uci"
            file = self.path / below / f"{dataset}{suffix}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content(dataset, methods, preset=preset, **more)))
            return file

        def put_depth(self, dataset, given=None, again=None, below=""):
            file = self.path / "depth" / below / f"{dataset}.json"
            if again:
                file = file.with_name("again") / f"{again}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(given or depth_content(dataset)))
            return file

        def put_new_seeds(self, dataset, **changes):
            given = depth_content(dataset)
            given["config"] |= {"seeds": [100 + seed for seed in given["config"]["seeds"]]}
            given["config"] |= changes.pop("config", {})
            return self.put_depth(dataset, given | changes, below="new-seeds")

        def put_order(self, order):
            file = self.path / "depth" / "again" / "order.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(order))

    made = Folder()
    made.path.mkdir()
    return made
