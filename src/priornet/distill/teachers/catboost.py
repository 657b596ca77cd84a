"""CatBoost models as teachers: several of them, or the virtual ensemble inside one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priornet._lazy import need_for
from priornet.distill.teacher import Teacher, TeacherError, columns_by_name
from priornet.tables.raw import as_matrix


class CatBoostTeacher(Teacher):
    """CatBoost regressors trained with the loss ``RMSEWithUncertainty``.

    Args:
        models: One model, of which the virtual ensemble answers (parts of its trees; Malinin et
            al., 2021), or several, each of them a member.
        n_virtual: Members of the virtual ensemble.
    """

    kind = "steps"

    def __init__(self, models: Any, *, n_virtual: int = 10) -> None:
        catboost = need_for("catboost", "ask a CatBoost teacher", "catboost", ImportError)
        self.models: list[Any] = list(models) if isinstance(models, Sequence) else [models]
        self.n_virtual = n_virtual
        if not self.models:
            raise TypeError("`models` must be a CatBoost model or a filled list of them.")
        for model in self.models:
            if not isinstance(model, catboost.CatBoost):
                raise TypeError(f"`models` must be CatBoost models; got {type(model).__name__}.")
            if not model.is_fitted():
                raise ValueError("a CatBoost model is not fitted: fit it first.")
            loss = model.get_all_params().get("loss_function")
            if loss != "RMSEWithUncertainty":
                raise ValueError(
                    f'a CatBoost teacher needs loss_function="RMSEWithUncertainty"; got "{loss}". '
                    "For models without a variance use RegressorsTeacher."
                )
        if len(self.models) == 1 and n_virtual < 2:
            raise ValueError(f"`n_virtual` must be at least 2; got {n_virtual}.")
        names = self.feature_names
        self.label_columns = tuple(
            i if names is None else names[i] for i in self.models[0].get_cat_feature_indices()
        )

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for an array, whose columns CatBoost numbers."""
        names = tuple(str(name) for name in self.models[0].feature_names_)
        return None if names == tuple(str(i) for i in range(len(names))) else names

    def gaussians(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predict mean and variance of each member, for one target."""
        if isinstance(X, Mapping):
            raise TeacherError("CatBoost reads arrays and frames; give one of them.")
        rows = columns_by_name(X, self.feature_names)
        if self.feature_names is None and not self.label_columns:
            rows = as_matrix(X)
        if len(self.models) == 1:
            answers = self.models[0].virtual_ensembles_predict(
                rows, prediction_type="VirtEnsembles", virtual_ensembles_count=self.n_virtual
            )  # (N, M, 2)
            answers = np.moveaxis(answers, 1, 0)
        else:
            answers = np.stack([model.predict(rows) for model in self.models])  # (M, N, 2)
        return answers[..., 0], answers[..., 1]

    def n_bytes(self) -> int | None:
        """Measure the models as CatBoost saves them."""
        return sum(len(model._serialize_model()) for model in self.models)
