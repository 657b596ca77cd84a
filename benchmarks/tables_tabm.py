"""TabM with piecewise-linear embeddings of numbers, trained as its page says, in fewer steps.

Its own defaults are 512 units and as many steps as early stopping allows: hours on one core.
Here it has 128 units, at most 1500 steps of 256 rows, and stops after 16 looks without gain.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import torch
from tables_inputs import counted_days, inner_split, text_columns
from tables_scores import Answer
from torch import Tensor

WIDTH, MOST_STEPS, BATCH, PATIENCE, LOOK_EVERY = 128, 1500, 256, 16, 25
RATE, DECAY = 2e-3, 3e-4
BINS, EMBEDDED = 48, 16


class TabM:
    """TabM's 32 members; their mean, and their variance as knowledge uncertainty."""

    def fit(self, X: pd.DataFrame, y: np.ndarray, seed: int) -> None:
        torch.manual_seed(seed)
        self.encode = Inputs(X)
        self.centre, self.scale = y.mean(), y.std()
        numbers, codes = self.encode(X)
        target = torch.from_numpy((y - self.centre) / self.scale).float()
        kept, held = map(torch.from_numpy, inner_split(len(y), seed))
        self.model = self._network(numbers[kept])
        optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, weight_decay=DECAY)
        best, best_state, looks = np.inf, copy.deepcopy(self.model.state_dict()), 0
        for step in range(1, MOST_STEPS + 1):
            rows = kept[torch.randint(len(kept), (min(BATCH, len(kept)),))]
            self.model.train()
            error = self._members(numbers[rows], codes[rows]) - target[rows, None]
            optimiser.zero_grad()
            error.square().mean().backward()
            optimiser.step()
            if step % LOOK_EVERY == 0:
                found = self._predict(numbers[held], codes[held]).mean(1)
                loss = float((found - target[held]).square().mean())
                looks += 1
                if loss < best:
                    best, best_state, looks = loss, copy.deepcopy(self.model.state_dict()), 0
                if looks == PATIENCE:
                    break
        self.model.load_state_dict(best_state)

    def answer(self, X: pd.DataFrame) -> Answer:
        members = self._predict(*self.encode(X)).double().numpy()
        knowledge = {"variance_of_mean": members.var(1)}
        return Answer(self.centre + self.scale * members.mean(1), knowledge=knowledge)

    def _network(self, numbers: Tensor) -> Any:
        import tabm  # pyright: ignore[reportMissingImports]
        from rtdl_num_embeddings import (  # pyright: ignore[reportMissingImports]
            PiecewiseLinearEmbeddings,
            compute_bins,
        )

        embeddings = None
        if numbers.shape[1]:
            bins = compute_bins(numbers, min(BINS, len(numbers) - 1))
            embeddings = PiecewiseLinearEmbeddings(bins, EMBEDDED, activation=False, version="B")
        return tabm.TabM.make(
            n_num_features=numbers.shape[1],
            cat_cardinalities=self.encode.cardinalities,
            d_out=1,
            d_block=WIDTH,
            num_embeddings=embeddings,
        )

    def _members(self, numbers: Tensor, codes: Tensor) -> Tensor:
        given = numbers if numbers.shape[1] else None, codes if codes.shape[1] else None
        return self.model(*given).squeeze(-1)

    @torch.no_grad()
    def _predict(self, numbers: Tensor, codes: Tensor) -> Tensor:
        self.model.eval()
        parts = zip(numbers.split(2048), codes.split(2048), strict=True)
        return torch.cat([self._members(*part) for part in parts])


class Inputs:
    """Numbers as normal scores, missing ones in the middle; labels as codes, 0 for unknown."""

    def __init__(self, X: pd.DataFrame) -> None:
        from sklearn.preprocessing import QuantileTransformer

        X = counted_days(X)
        self.labels = {name: pd.Index(X[name].dropna().unique()) for name in text_columns(X)}
        numbers = X.drop(columns=list(self.labels))
        self.names = list(numbers.columns[numbers.nunique() > 1])
        self.cardinalities = [len(labels) + 1 for labels in self.labels.values()]
        self.scores = QuantileTransformer(
            n_quantiles=min(1000, len(X)), output_distribution="normal", random_state=0
        )
        if self.names:
            self.scores.fit(numbers[self.names].to_numpy())

    def __call__(self, X: pd.DataFrame) -> tuple[Tensor, Tensor]:
        X = counted_days(X)
        numbers = torch.zeros(len(X), 0)
        if self.names:
            scores = self.scores.transform(X[self.names].to_numpy())
            numbers = torch.from_numpy(np.nan_to_num(scores)).float()
        codes = [labels.get_indexer(X[name]) + 1 for name, labels in self.labels.items()]
        stacked = np.stack(codes, 1) if codes else np.zeros((len(X), 0))
        return numbers, torch.from_numpy(stacked).long()
