"""The paper's tables as their authors distribute them, written small, and a server that has them.

The writers share nothing with the readers under test but the two Excel libraries' file formats.
"""

import io
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import openpyxl
import xlwt

from priornet_paper.uci.data.registry import DATASETS
from priornet_paper.uci.data.tables import fingerprints, measure

REAL = Path(__file__).parents[2] / "shared" / "data" / "uci"
STATLIB = """\
 The Boston house-price data of Harrison, D. and Rubinfeld, D.L. 1978.

 Variables in order:
 CRIM     per capita crime rate by town
 B        1000(Bk - 0.63)^2 where Bk is the proportion of blacks by town

"""


def small(name, n_rows=20, seed=0):
    """A table of the right width, every column in the original order; some rows may repeat."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(n_rows, len(DATASETS[name].columns))) * 100, 3)


def split(name, values):
    """Inputs and targets of a table whose columns are in the original order."""
    known = DATASETS[name]
    inputs = np.stack([values[:, known.columns.index(key)] for key in known.feature_names], axis=1)
    return inputs, values[:, known.columns.index(known.target)]


def lines(values, separator):
    return "".join(separator.join(repr(float(v)) for v in row) + "\n" for row in values)


def housing(values):
    return "".join("".join(f" {float(v)!r:>8}" for v in row) + "\n" for row in values).encode()


def statlib(values):
    rows = (
        " ".join(map(repr, map(float, part))) for row in values for part in (row[:11], row[11:])
    )
    return (STATLIB + "".join(f" {row}\n" for row in rows)).encode()


def xls(values, header):
    book = xlwt.Workbook()
    for title, rows in (("Sheet1", [header, *values.tolist()]), ("Sheet2", []), ("Sheet3", [])):
        sheet = book.add_sheet(title)
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                sheet.write(i, j, cell)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def xlsx(sheets, header):
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for number, values in enumerate(sheets):
        sheet = book.create_sheet(f"Sheet{number + 1}")
        sheet.append(header)
        for row in values.tolist():
            sheet.append(row)
        # Empty cells below and beside, as in the workbook of the energy table.
        sheet.cell(len(values) + 9, len(header) + 2).number_format = "0.00"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def packed(**members):
    """A zip of ``name=content``, in which ``__`` stands for a slash."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return file.getvalue()


def power_book(values):
    rng = np.random.default_rng(1)
    others = [rng.permutation(values)[:100] for _ in range(4)]
    return xlsx([*others, values], ["AT", "V", "AP", "RH", "PE"])


def wine_text(values):
    header = ";".join(f'"{name.replace("_", " ")}"' for name in DATASETS["wine"].columns)
    return header + "\n" + lines(values, ";")


def naval_text(values):
    return "".join("".join(f"   {float(v)!r}" for v in row) + " \n" for row in values)


def comma_text(name, values):
    return ",".join(DATASETS[name].columns) + "\n" + lines(values, ",")


def download_of(name, values):
    """The file that a table's address serves: the original, or its archive."""
    if name == "boston":
        return housing(values)
    if name == "concrete":
        header = [f"{key} (component)(kg in a m^3 mixture)" for key in DATASETS[name].columns]
        return packed(**{"Concrete_Data.xls": xls(values, header), "Concrete_Readme.txt": "x 1"})
    if name == "energy":
        header = [*(f"X{i}" for i in range(1, 9)), "Y1", "Y2"]
        return packed(**{"ENB2012_data.xlsx": xlsx([values], header)})
    if name == "power":
        return packed(
            **{"CCPP__Readme.txt": "1 2", "CCPP__Folds5x2_pp.xlsx": power_book(values)},
        )
    if name == "wine":
        white = wine_text(small("wine", seed=9))
        members = {"winequality-white.csv": white, "winequality-red.csv": wine_text(values)}
        return packed(**{**members, "winequality.names": "1. Title: Wine Quality"})
    if name == "protein":
        return packed(**{"CASP.csv": comma_text(name, values)})
    if name == "msd":
        return packed(**{"YearPredictionMSD.txt": lines(values, ",")})
    if name == "naval":  # an archive in an archive
        members = {"UCI CBM Dataset__Features.txt": "1 - Lever position"}
        members["UCI CBM Dataset__data.txt"] = naval_text(values)
        return packed(**{"UCI CBM Dataset.zip": packed(**members)})
    return packed(**{"slice_localization_data.csv": comma_text(name, values)})


def register(monkeypatch, name, values, **changes):
    """Let a small table be the one of this name, fingerprint and all."""
    known = DATASETS[name]
    if known.first_rows is not None:
        changes = {"first_rows": len(values) // 2, **changes}
    known = replace(known, n_rows=len(values), **changes)
    n_known = known.first_rows or len(values)
    own = measure(*(part[:n_known] for part in split(name, values)))
    monkeypatch.setitem(DATASETS, name, known)
    monkeypatch.setitem(fingerprints(), name, own)
    return known


class Server:
    """The served files by path, and the paths that were requested."""

    def __init__(self, url):
        self.url, self.files, self.requests = url, {}, []
        self.cut = None  # how many bytes are sent of those that were promised

    def offer(self, monkeypatch, name, content, *, path=None):
        """Serve a table under the last part of its address, and let it be found there."""
        path = path or DATASETS[name].url.rpartition("/")[2]
        self.files[f"/{path}"] = content
        monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], urls=(f"{self.url}/{path}",)))


@contextmanager
def serving():
    """A server on this machine, for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.requests.append(self.path)
            content = server.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: server.cut])

        def log_message(self, format, *args):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http.server_port}")
    thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
