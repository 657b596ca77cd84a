"""The registry of tables: their columns, sizes, sources and licences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from priornet._lazy import need_for
from priornet.tables import TableError

_CC_BY = "CC BY 4.0"
_UCI = "https://archive.ics.uci.edu"


class UciError(TableError):
    """A table is unknown, missing, or not what it should be; the message is one line."""


need = partial(need_for, extra="uci", error=UciError)
"""Import a package that only some tables need."""


@dataclass(frozen=True)
class Dataset:
    """One table.

    Attributes:
        name: Name for ``load_uci``.
        title: Name that its authors give it.
        n_rows: Rows of the whole table.
        columns: Every column, in the order of the original file.
        target: The column to predict.
        dropped: Columns that are neither features nor the target.
        files: Names under which the original table is distributed; the last part of the first is
            looked for in archives.
        urls: Addresses to download from, the first choice first.
        source: Its authors.
        licence: Terms of use.
        first_rows: Number of rows at the start whose fingerprint is known, if that of the whole
            table is not.
        sheet: Sheet of a workbook, from 0.
        published_as: Folder of this table among the published splits, if it has some.
        n_splits: Number of these splits.
    """

    name: str
    title: str
    n_rows: int
    columns: tuple[str, ...]
    target: str
    files: tuple[str, ...]
    urls: tuple[str, ...]
    source: str
    licence: str = _CC_BY
    dropped: tuple[str, ...] = ()
    first_rows: int | None = None
    sheet: int = 0
    published_as: str | None = None
    n_splits: int = 20

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Return the names of the features, in order."""
        others = {self.target, *self.dropped}
        return tuple(name for name in self.columns if name not in others)

    @property
    def n_features(self) -> int:
        """Return the number of features."""
        return len(self.feature_names)

    @property
    def url(self) -> str:
        """Return the first address to download from."""
        return self.urls[0]


def dataset(name: str) -> Dataset:
    """Return the table of this name; an unknown name is an error that lists the known ones."""
    if name not in DATASETS:
        raise UciError(f'unknown dataset "{name}"; choose one of: {", ".join(DATASETS)}.')
    return DATASETS[name]


def _numbered(prefix: str, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in numbers)


_TABLES = (
    Dataset(
        name="boston",
        title="Boston housing",
        n_rows=506,
        columns=(
            *("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX"),
            *("PTRATIO", "B", "LSTAT", "MEDV"),
        ),
        target="MEDV",
        files=("housing.data",),
        urls=(
            f"{_UCI}/ml/machine-learning-databases/housing/housing.data",
            "http://lib.stat.cmu.edu/datasets/boston",
        ),
        source="Harrison and Rubinfeld 1978",
        licence="none stated",
        published_as="bostonHousing",
    ),
    Dataset(
        name="concrete",
        title="Concrete Compressive Strength",
        n_rows=1030,
        columns=(
            *("cement", "slag", "fly_ash", "water", "superplasticizer"),
            *("coarse_aggregate", "fine_aggregate", "age", "strength"),
        ),
        target="strength",
        files=("Concrete_Data.xls",),
        urls=(f"{_UCI}/static/public/165/concrete+compressive+strength.zip",),
        source="Yeh 1998",
        published_as="concrete",
    ),
    Dataset(
        name="energy",
        title="Energy Efficiency",
        n_rows=768,
        columns=(
            *("relative_compactness", "surface_area", "wall_area", "roof_area"),
            *("overall_height", "orientation", "glazing_area", "glazing_area_distribution"),
            *("Y1_heating_load", "Y2_cooling_load"),
        ),
        target="Y1_heating_load",
        dropped=("Y2_cooling_load",),
        files=("ENB2012_data.xlsx",),
        urls=(f"{_UCI}/static/public/242/energy+efficiency.zip",),
        source="Tsanas and Xifara 2012",
        published_as="energy",
    ),
    Dataset(
        name="power",
        title="Combined Cycle Power Plant",
        n_rows=9568,
        columns=("AT", "V", "AP", "RH", "PE"),
        target="PE",
        files=("Folds5x2_pp.xlsx", "CCPP.zip"),
        urls=(f"{_UCI}/static/public/294/combined+cycle+power+plant.zip",),
        source="Tüfekci 2014",
        sheet=4,  # five shufflings of one table; the published splits count the rows of the fifth
        published_as="power-plant",
    ),
    Dataset(
        name="wine",
        title="Wine Quality, red",
        n_rows=1599,
        columns=(
            *("fixed_acidity", "volatile_acidity", "citric_acid", "residual_sugar", "chlorides"),
            *("free_sulfur_dioxide", "total_sulfur_dioxide", "density", "pH", "sulphates"),
            *("alcohol", "quality"),
        ),
        target="quality",
        files=("winequality-red.csv",),
        urls=(f"{_UCI}/static/public/186/wine+quality.zip",),
        source="Cortez et al. 2009",
        published_as="wine-quality-red",
    ),
    Dataset(
        name="protein",
        title="Physicochemical Properties of Protein Tertiary Structure",
        n_rows=45730,
        columns=("RMSD", *_numbered("F", range(1, 10))),
        target="RMSD",
        files=("CASP.csv",),
        urls=(
            f"{_UCI}/static/public/265/"
            "physicochemical+properties+of+protein+tertiary+structure.zip",
        ),
        source="Rana 2013, from CASP 5 to 9",
        published_as="protein-tertiary-structure",
        n_splits=5,
    ),
    Dataset(
        name="msd",
        title="YearPredictionMSD",
        n_rows=515_345,
        columns=(
            "year",
            *_numbered("timbre_avg_", range(1, 13)),
            *_numbered("timbre_cov_", range(1, 79)),
        ),
        target="year",
        files=("YearPredictionMSD.txt", "YearPredictionMSD.txt.zip", "YearPredictionMSD.zip"),
        urls=(f"{_UCI}/static/public/203/yearpredictionmsd.zip",),
        source="Bertin-Mahieux 2011",
        first_rows=1176,
    ),
    Dataset(
        name="naval",
        title="Condition Based Maintenance of Naval Propulsion Plants",
        n_rows=11934,
        columns=(
            *("lp", "v", "GTT", "GTn", "GGn", "Ts", "Tp", "T48", "T1", "T2"),
            *("P48", "P1", "P2", "Pexh", "TIC", "mf", "decay_compressor", "decay_turbine"),
        ),
        target="decay_compressor",
        dropped=("decay_turbine",),
        files=("UCI CBM Dataset/data.txt", "UCI CBM Dataset.zip"),
        urls=(
            f"{_UCI}/static/public/316/condition+based+maintenance+of+naval+propulsion+plants.zip",
        ),
        source="Coraddu et al. 2014",
        published_as="naval-propulsion-plant",
    ),
    Dataset(
        name="ct_slices",
        title="Relative Location of CT Slices on Axial Axis",
        n_rows=53500,
        columns=("patientId", *_numbered("value", range(384)), "reference"),
        target="reference",
        dropped=("patientId",),
        files=("slice_localization_data.csv", "slice_localization_data.zip"),
        urls=(f"{_UCI}/static/public/206/relative+location+of+ct+slices+on+axial+axis.zip",),
        source="Graf et al. 2011",
        first_rows=682,
    ),
)

DATASETS: dict[str, Dataset] = {table.name: table for table in _TABLES}
