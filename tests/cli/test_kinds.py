"""Files of our own making are known by what they hold, whoever named them."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from priornet.cli.kinds import FIGURE, IMAGE_TABLE, MAPS, MODEL, ONNX, PREDICTIONS, PROGRAM, RESULTS

ADDED = b"prediction,lower,upper,total,data,knowledge,in_domain,verdict"
HEADER = b"x," + ADDED + b"\n"
ENTROPIES = b"verdict,total_entropy,data_entropy,mutual_information,epkl"
PREFIXED = b"x,total," + b",".join(b"priornet_" + name for name in ADDED.split(b",")) + b"\n"
TWO = (
    b"x,prediction_a,lower_a,upper_a,total_a,data_a,knowledge_a,prediction_b c,lower_b c,"
    b"upper_b c,total_b c,data_b c,knowledge_b c,in_domain,verdict,unseen\n"
)


@pytest.mark.parametrize(
    ("name", "content", "is_own"),
    [
        ("a.csv", HEADER, True),
        ("a.csv", HEADER.replace(b"verdict", ENTROPIES), True),
        ("a.csv", HEADER.replace(b"verdict", ENTROPIES.replace(b",", b",unseen,", 1)), True),
        ("a.csv", PREFIXED, True),
        ("a.csv", PREFIXED.replace(b"verdict", b"verdict,priornet_unseen"), True),
        ("a.csv", TWO, True),
        ("a.csv", TWO.replace(b"upper_b c", b"upper_b"), False),
        ("a.csv", b"case,judge,verdict\n", False),
        ("a.csv", b"in_domain,verdict\n", False),
        ("a.csv", b"model,layer,epkl\n", False),
        ("a.csv", HEADER.replace(b"verdict", b"priornet_verdict"), False),
        ("a.csv", HEADER.replace(b"lower,upper", b"upper,lower"), False),
        ("a.csv", HEADER.replace(b"verdict", b"verdict,unseen"), True),
        ("a.csv", b'"two\nlines",' + HEADER, True),
        ("a.tsv", HEADER.replace(b",", b"\t"), True),
        ("a.csv.gz", gzip.compress(HEADER, mtime=0), True),
        ("a.csv.gz", gzip.compress(HEADER, mtime=0)[:-9], False),
        ("a.csv.gz", HEADER, False),
        ("a.csv", HEADER.replace(b"verdict", b"verdict,checked by hand"), False),
        ("a.csv", b"x,y\n1,2\n", False),
        ("a.csv", "x,größe\n".encode("latin-1"), False),
        ("a.csv", b"", False),
        ("a.parquet", b"PAR1 and no more", False),
        ("a.csv", b"x" * 200_000, False),
    ],
)
def test_predictions_end_in_our_columns(tmp_path, name, content, is_own):
    path = tmp_path / name
    path.write_bytes(content)
    assert PREDICTIONS.is_own(path) is is_own


@pytest.mark.parametrize("last", ["verdict", "price"])
def test_parquet_is_known_by_its_schema(tmp_path, last):
    names = ["x", *ADDED.decode().split(",")[:-1], last]
    pq.write_table(pa.table({name: [1.0] for name in names}), tmp_path / "a.parquet")
    assert PREDICTIONS.is_own(tmp_path / "a.parquet") is (last == "verdict")


def test_results_are_known_even_if_they_are_damaged(tmp_path):
    path = tmp_path / "a.json"
    content = {"dataset": "wine", "versions": {"priornet": "0.1.0"}}
    for text, is_own in (
        (json.dumps(content, indent=1), True),
        (json.dumps(content, indent=1)[:-5], True),
        (json.dumps(content), True),
        (json.dumps({"dataset": "wine"}, indent=1), False),
        ("{", False),
        ("[]", False),
    ):
        path.write_text(text)
        assert RESULTS.is_own(path) is is_own, text


def test_maps_and_their_table(tmp_path):
    names = ("depth", "lower", "upper", "total", "data")
    maps: Any = {name: np.ones(2) for name in names}
    np.savez_compressed(tmp_path / "ours.npz", **maps)
    np.savez_compressed(tmp_path / "other.npz", depth=np.ones(2))
    assert MAPS.is_own(tmp_path / "ours.npz")
    assert not MAPS.is_own(tmp_path / "other.npz")
    (tmp_path / "images.csv").write_text("image,depth,total,data,knowledge,epkl\n")
    assert IMAGE_TABLE.is_own(tmp_path / "images.csv")
    assert not PREDICTIONS.is_own(tmp_path / "ours.npz")


@pytest.mark.parametrize("kind", [FIGURE, MODEL, ONNX, PROGRAM], ids=lambda kind: kind.called)
def test_what_cannot_be_read_is_not_ours(tmp_path, kind):
    (tmp_path / "junk").write_bytes(b"\xff\x00junk")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text("[1]")
    for name in ("junk", "folder", "none"):
        assert not kind.is_own(tmp_path / name)


def test_figures_of_the_pages_are_known():
    folder = Path(__file__).parents[2] / "docs" / "images"
    figures = [path for path in folder.iterdir() if path.name != "report.png"]  # a screenshot
    assert len(figures) > 10
    assert [path.name for path in figures if not FIGURE.is_own(path)] == []
