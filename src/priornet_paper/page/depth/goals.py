"""What was wanted of the depth experiment, and whether it was reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from priornet_paper.page.compare import (
    FAILS,
    HOLDS,
    NOT_RUN,
    ROUNDING,
    UNFINISHED,
    Goal,
    state_of,
    tally,
)
from priornet_paper.page.depth.numbers import (
    DEPTH_MEASURES,
    DEPTH_SETS,
    FOREIGN,
    TITLES,
    DepthScores,
)
from priornet_paper.page.markdown import shown, signed
from priornet_paper.page.notes import Miss
from priornet_paper.page.numbers import KNOWLEDGE

__all__ = ["Verdict", "find_goals", "find_verdicts"]

_SEEDS = {"nyu": 3, "kitti": 2}
_LEAST_DELTA, _MOST_REL = 0.76, 0.175
_DELTA_GAP, _RMSE_RATIO = 0.005, 1.02
_PAIRS_NEEDED = 3
# Metrics, with the sign that turns less into better.
_EVERY = {
    "delta1": ("δ1", -1),
    "delta2": ("δ2", -1),
    "delta3": ("δ3", -1),
    "rel": ("rel", 1),
    "rmse": ("rmse", 1),
    "log10": ("log10, mean", 1),
    "rmse_log10": ("log10, rms", 1),
    "nll": ("NLL", 1),
}

_MEMBERS = "the mean of the members counts since first members alone had been better on KITTI"
_TEMPERATURE = "which temperature counts was changed, and changed back, with both scores known"


class Verdict(NamedTuple):
    """A goal about one set or one pair of sets: None where it was not measured."""

    wanted: str
    found: str
    is_good: bool | None


class _Ledger:
    """Goals and misses as they are found."""

    def __init__(self, scores: DepthScores, contents: Mapping[str, Mapping[str, Any]]) -> None:
        self.scores, self.contents = scores, contents
        self.goals: list[Goal] = []
        self.misses: list[Miss] = []
        self.verdicts: dict[tuple[str, str], Verdict] = {}

    def add(
        self,
        dataset: str,
        key: str,
        wanted: str,
        found: str,
        is_good: bool | None,
        caveat: str = "",
    ) -> None:
        """A goal about one set: None where a number is missing."""
        self.verdicts[dataset, key] = Verdict(wanted, found, is_good)
        state = NOT_RUN if is_good is None else HOLDS if is_good else FAILS
        if is_good is not None and not self.has_seeds(dataset):
            state = UNFINISHED
        wanted = f"Depth, {TITLES[dataset]}, {self.n_seeds(dataset)} seeds: {wanted}"
        goal = Goal(wanted, found if is_good is not None else "", state)
        self.goals.append(goal.after_scores(caveat))
        if state == FAILS:
            self.misses.append(Miss(f"depth/{dataset}/{key}", f"{TITLES[dataset]}, {found}"))

    def has_seeds(self, dataset: str) -> bool:
        """Whether as many seeds were run as are wanted."""
        return len(self.contents[dataset]["config"]["seeds"]) >= _SEEDS[dataset]

    def n_seeds(self, dataset: str) -> int:
        """As many as are wanted, or as were run if that is more."""
        content = self.contents.get(dataset)
        return max(_SEEDS[dataset], len(content["config"]["seeds"]) if content else 0)

    def students(self, dataset: str) -> dict[str, str]:
        """EnD2 by its temperature: first as it comes, which is judged, then its variants."""
        content = self.contents.get(dataset)
        if content is None:
            return {"": "EnD2"}
        found = {f"T = {content['config']['temperature']:g}": "EnD2"}
        variants = {f"T = {name.removeprefix('EnD2-T')}": name for name in content["variants"]}
        others = {w: name for w, name in variants.items() if "EnD2-T" in name and w not in found}
        return found | others

    def means(self, dataset: str, metric: str, *methods: str) -> list[float] | None:
        """A metric of several methods, if all have it."""
        found = [self.scores.mean(dataset, method, metric) for method in methods]
        known = [value for value in found if value is not None]
        return known if len(known) == len(methods) else None


def find_goals(
    scores: DepthScores, contents: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Goal], list[Miss]]:
    """Goals of both sets, those that have not been run among them, and what was missed."""
    ledger = _judged(scores, contents)
    return ledger.goals, ledger.misses


def find_verdicts(
    scores: DepthScores, dataset: str, content: Mapping[str, Any]
) -> dict[str, Verdict]:
    """Whether one results file reaches each goal of its set, with however few seeds.

    The goal about foreign images is taken apart into the pairs of this set.
    """
    ledger = _judged(scores, {dataset: content})
    return {key: value for (name, key), value in ledger.verdicts.items() if name == dataset}


def _judged(scores: DepthScores, contents: Mapping[str, Mapping[str, Any]]) -> _Ledger:
    ledger = _Ledger(scores, contents)
    _single(ledger)
    for dataset in DEPTH_SETS:
        _ensemble(ledger, dataset)
        _student(ledger, dataset)
        _likelihood(ledger, dataset)
    _knowledge(ledger)
    return ledger


def _single(ledger: _Ledger) -> None:
    delta, rel = (ledger.means("nyu", metric, "Single") for metric in ("delta1", "rel"))
    wanted = f"Single's δ1 at least {_LEAST_DELTA}, rel at most {_MOST_REL}"
    if delta is None or rel is None:
        ledger.add("nyu", "Single", wanted, "", None)
        return
    is_good = delta[0] >= _LEAST_DELTA - ROUNDING and rel[0] <= _MOST_REL + ROUNDING
    found = f"Single: δ1 {shown(delta[0], 3)}, rel {shown(rel[0], 3)}"
    ledger.add("nyu", "Single", wanted, found, is_good)


def _ensemble(ledger: _Ledger, dataset: str) -> None:
    # Single is the first member of each ensemble: a good or a bad one, by chance. What one network
    # of the kind does is the mean over all members, where they were scored.
    members = _compared(ledger, dataset, lambda metric: ("ENSM", "members", metric))
    single = _compared(ledger, dataset, lambda metric: ("Single", metric))
    n_known, worse = members if members[0] else single
    found, wanted = f"ENSM better than Single in {_won(single)}", "ENSM better than Single"
    caveat = _MEMBERS if members[0] else ""
    if members[0]:
        wanted = f"{wanted} (the mean of its members)"
        found = f"ENSM better than a member on average in {_won(members)}; "
        found += f"than the first, Single, in {_won(single)}"
    is_good = None if n_known < len(_EVERY) else not worse
    ledger.add(dataset, "ENSM", f"{wanted} on every metric", found, is_good, caveat)


def _won(compared: tuple[int, list[str]]) -> str:
    n_known, worse = compared
    text = f"{n_known - len(worse)} of {n_known} metrics"
    return f"{text} (not: {'; '.join(worse)})" if worse else text


def _compared(
    ledger: _Ledger, dataset: str, other: Callable[[str], tuple[str, ...]]
) -> tuple[int, list[str]]:
    """How many metrics the ensemble and another have, and those where it is not the better one."""
    worse: list[str] = []
    n_known = 0
    for metric, (title, sign) in _EVERY.items():
        own = ledger.scores.mean(dataset, "ENSM", metric)
        its = ledger.scores.mean(dataset, *other(metric))
        if own is None or its is None:
            continue
        n_known += 1
        if sign * own >= sign * its:
            worse.append(f"{title} {shown(own, 3)} against {shown(its, 3)}")
    return n_known, worse


def _student(ledger: _Ledger, dataset: str) -> None:
    wanted = f"EnD2 within {_DELTA_GAP} δ1 and 2 % rmse of ENSM"
    texts: dict[str, str] = {}
    verdicts: dict[str, bool] = {}
    students = ledger.students(dataset)
    for warmth, name in students.items():
        deltas = ledger.means(dataset, "delta1", name, "ENSM")
        errors = ledger.means(dataset, "rmse", name, "ENSM")
        if deltas is None or errors is None:
            continue
        gap, ratio = deltas[0] - deltas[1], errors[0] / errors[1]
        texts[warmth] = f"δ1 {signed(gap, 4)}, rmse {signed(100 * (ratio - 1), 1)} %"
        is_good = gap >= -_DELTA_GAP - ROUNDING and ratio <= _RMSE_RATIO + ROUNDING
        verdicts[warmth] = is_good
    found = f"EnD2 to ENSM: {_by_warmth(texts)}"
    is_good = verdicts.get(next(iter(students)))
    ledger.add(dataset, "EnD2/accuracy", wanted, found, is_good, _caveat(texts))


def _likelihood(ledger: _Ledger, dataset: str) -> None:
    wanted = "EnD2's NLL below ENSM's (of the mixture) and Single's"
    others = ledger.means(dataset, "nll", "ENSM", "Single")
    if others is None:
        ledger.add(dataset, "EnD2/nll", wanted, "", None)
        return
    students = ledger.students(dataset)
    own = {warmth: ledger.scores.mean(dataset, name, "nll") for warmth, name in students.items()}
    known = {warmth: value for warmth, value in own.items() if value is not None}
    texts = {warmth: shown(value, 3) for warmth, value in known.items()}
    found = f"NLL: EnD2 {_by_warmth(texts)}; ENSM {shown(others[0], 3)}"
    moments = ledger.means(dataset, "nll_moment_matched", "ENSM")
    found += "" if moments is None else f" (by its moments {shown(moments[0], 3)})"
    found += f", Single {shown(others[1], 3)}"
    judged = own[next(iter(students))]
    is_good = None if judged is None else judged < min(others)
    ledger.add(dataset, "EnD2/nll", wanted, found, is_good, _caveat(texts))


def _caveat(texts: Mapping[str, str]) -> str:
    """What to know of a goal about students at several temperatures."""
    return _TEMPERATURE if len(texts) > 1 else ""


def _by_warmth(texts: Mapping[str, str]) -> str:
    """What was found at each temperature, the one that is judged first."""
    return "; ".join(f"{text} ({warmth})" for warmth, text in texts.items())


class _Pair(NamedTuple):
    """One student's mutual information, and the best measure of knowledge of its ensemble."""

    other: str
    title: str
    key: str
    student: float
    measure: str
    teacher: float

    @property
    def is_good(self) -> bool:
        return self.student >= self.teacher - ROUNDING

    @property
    def text(self) -> str:
        return f"{shown(self.student, 3)} to {shown(self.teacher, 3)} ({self.measure})"


def _knowledge(ledger: _Ledger) -> None:
    """EnD2's mutual information against the best knowledge measure of its ensemble."""
    judged, other = _pairs(ledger, 0), _pairs(ledger, 1)
    _note_pairs(ledger, judged, other)
    for dataset, pair in judged:
        if pair is not None and not pair.is_good and ledger.has_seeds(dataset):
            line = f"{pair.title}, AUC of EnD2's I to ENSM's {pair.text}"
            ledger.misses.append(Miss(pair.key, line))
    count = tally([None if pair is None else pair.is_good for _, pair in judged])
    wanted = "Depth, OOD AUC: EnD2's I at least the ensemble's best of I, K and V[mu], in "
    wanted += f"{_PAIRS_NEEDED} of {count.total} pairs of sets"
    is_whole = all(ledger.has_seeds(dataset) for dataset in ledger.contents)
    known = count.measured > 0
    state = state_of(count, _PAIRS_NEEDED) if is_whole or not known else UNFINISHED
    found = _counted(judged, lambda pair: f"{pair.title} {pair.text}") if known else ""
    is_compared = known and any(pair is not None for _, pair in other)
    if is_compared:
        found += (
            f"; at the other temperature {_counted(other, lambda pair: shown(pair.student, 3))}"
        )
    ledger.goals.append(Goal(wanted, found, state).after_scores(_TEMPERATURE * is_compared))


def _note_pairs(
    ledger: _Ledger,
    judged: Sequence[tuple[str, _Pair | None]],
    others: Sequence[tuple[str, _Pair | None]],
) -> None:
    """A verdict on each pair of sets, with the student of the other temperature beside it."""
    for (dataset, pair), (_, beside) in zip(judged, others, strict=True):
        if pair is None:
            continue
        warmths = list(ledger.students(dataset))
        texts = {warmths[0]: shown(pair.student, 3)}
        if beside is not None:
            texts[warmths[1]] = shown(beside.student, 3)
        wanted = f"EnD2's I tells {TITLES[pair.other]} at least as well as ENSM's best measure"
        found = f"AUC: EnD2 {_by_warmth(texts)}; ENSM {shown(pair.teacher, 3)} ({pair.measure})"
        ledger.verdicts[dataset, f"ood_auc/{pair.other}"] = Verdict(wanted, found, pair.is_good)


def _counted(pairs: Sequence[tuple[str, _Pair | None]], text_of: Callable[[_Pair], str]) -> str:
    known = [pair for _, pair in pairs if pair is not None]
    n_good = sum(pair.is_good for pair in known)
    return f"{n_good} of {len(known)}: {'; '.join(text_of(pair) for pair in known)}"


def _pairs(ledger: _Ledger, place: int) -> list[tuple[str, _Pair | None]]:
    """Each set with each foreign one, for the student that is judged (0) or the next (1)."""
    found: list[tuple[str, _Pair | None]] = []
    for dataset in DEPTH_SETS:
        names = [*ledger.students(dataset).values()][place : place + 1]
        for other in FOREIGN[dataset]:
            pair = _pair(ledger.scores, names[0], dataset, other) if names else None
            found.append((dataset, pair))
    return found


def _pair(scores: DepthScores, name: str, dataset: str, other: str) -> _Pair | None:
    student = scores.mean(dataset, name, "ood_auc", other, "mutual_information")
    found = {
        DEPTH_MEASURES[measure]: scores.mean(dataset, "ENSM", "ood_auc", other, measure)
        for measure in KNOWLEDGE
    }
    known = {symbol: value for symbol, value in found.items() if value is not None}
    if student is None or not known:
        return None
    best = max(known, key=lambda symbol: known[symbol])
    title = f"{TITLES[dataset]} against {TITLES[other]}"
    return _Pair(other, title, f"depth/{dataset}/ood_auc/{other}", student, best, known[best])
