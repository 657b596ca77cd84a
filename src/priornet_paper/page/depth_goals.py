"""Goals of the depth experiment, and whether each was reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from priornet_paper.page.numbers import (
    DEPTH_MEASURES,
    DEPTH_SETS,
    KNOWLEDGE,
    OOD_SETS,
    ROUNDING,
    TITLES,
    Content,
    Scores,
    shown,
    signed,
)
from priornet_paper.page.sections import (
    FAILS,
    HOLDS,
    NOT_RUN,
    UNFINISHED,
    Goal,
    Miss,
    state_of,
    tally,
)

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
_TEMPERATURE = "the temperature that counts was changed, and changed back, with both scores known"


class Verdict(NamedTuple):
    """A goal about one set or one pair of sets: None if it was not measured."""

    wanted: str
    found: str
    is_good: bool | None


class _Ledger:
    """Goals and misses as they are found."""

    def __init__(self, scores: Scores, contents: Mapping[str, Content]) -> None:
        self.scores, self.contents = scores, contents
        self.goals: list[Goal] = []
        self.misses: list[Miss] = []
        self.verdicts: dict[tuple[str, str], Verdict] = {}

    def add(self, dataset: str, key: str, verdict: Verdict, caveat: str = "") -> None:
        """Add a goal about one set."""
        self.verdicts[dataset, key] = verdict
        wanted, found, is_good = verdict
        state = NOT_RUN if is_good is None else HOLDS if is_good else FAILS
        if is_good is not None and not self.has_seeds(dataset):
            state = UNFINISHED
        wanted = f"Depth, {TITLES[dataset]}, {self.n_seeds(dataset)} seeds: {wanted}"
        goal = Goal(wanted, found if is_good is not None else "", state)
        self.goals.append(goal.after_scores(caveat))
        if state == FAILS:
            self.misses.append(Miss(f"depth/{dataset}/{key}", f"{TITLES[dataset]}, {found}"))

    def has_seeds(self, dataset: str) -> bool:
        """Tell if as many seeds were run as are wanted."""
        return len(self.contents[dataset]["config"]["seeds"]) >= _SEEDS[dataset]

    def n_seeds(self, dataset: str) -> int:
        """Return the number of seeds that are wanted, or that were run if there are more."""
        content = self.contents.get(dataset)
        return max(_SEEDS[dataset], len(content["config"]["seeds"]) if content else 0)

    def students(self, dataset: str) -> dict[str, str]:
        """List EnD2 by its temperature: first the default, which is judged, then its variants."""
        content = self.contents.get(dataset)
        if content is None:
            return {"": "EnD2"}
        found = {f"T = {content['config']['temperature']:g}": "EnD2"}
        variants = {f"T = {name.removeprefix('EnD2-T')}": name for name in content["variants"]}
        others = {t: name for t, name in variants.items() if "EnD2-T" in name and t not in found}
        return found | others

    def means(self, dataset: str, metric: str, *methods: str) -> list[float] | None:
        """Return a metric of several methods, if all have it."""
        found = [self.scores.mean(dataset, method, metric) for method in methods]
        return None if None in found else [value for value in found if value is not None]


def find_goals(scores: Scores, contents: Mapping[str, Content]) -> tuple[list[Goal], list[Miss]]:
    """Evaluate the goals of both sets, and list the misses."""
    ledger = _judged(scores, contents)
    return ledger.goals, ledger.misses


def find_verdicts(scores: Scores, dataset: str, content: Content) -> dict[str, Verdict]:
    """Evaluate each goal of a set on one results file, with however few seeds.

    The goal about OOD images is split into the pairs of this set.
    """
    found = _judged(scores, {dataset: content}).verdicts
    return {key: value for (name, key), value in found.items() if name == dataset}


def _judged(scores: Scores, contents: Mapping[str, Content]) -> _Ledger:
    ledger = _Ledger(scores, contents)
    _single(ledger)
    for dataset in DEPTH_SETS:
        _ensemble(ledger, dataset)
        _student(ledger, dataset)
        _likelihood(ledger, dataset)
    _knowledge(ledger)
    return ledger


def _single(ledger: _Ledger) -> None:
    delta, rel = (ledger.scores.mean("nyu", "Single", metric) for metric in ("delta1", "rel"))
    found, is_good = "", None
    if delta is not None and rel is not None:
        is_good = delta >= _LEAST_DELTA - ROUNDING and rel <= _MOST_REL + ROUNDING
        found = f"Single: δ1 {shown(delta, 3)}, rel {shown(rel, 3)}"
    wanted = f"Single's δ1 at least {_LEAST_DELTA}, rel at most {_MOST_REL}"
    ledger.add("nyu", "Single", Verdict(wanted, found, is_good))


def _ensemble(ledger: _Ledger, dataset: str) -> None:
    # Single is the first member of each ensemble: a good or a bad one, by chance. The mean over
    # all members, if they were scored, tells what one network of the kind does.
    members = _compared(ledger, dataset, "ENSM", "members")
    single = _compared(ledger, dataset, "Single")
    n_known, worse = members if members[0] else single
    found, wanted = f"ENSM better than Single in {_won(single)}", "ENSM better than Single"
    if members[0]:
        wanted = f"{wanted} (the mean of its members)"
        found = f"ENSM better than a member on average in {_won(members)}; "
        found += f"than the first, Single, in {_won(single)}"
    is_good = None if n_known < len(_EVERY) else not worse
    verdict = Verdict(f"{wanted} on every metric", found, is_good)
    ledger.add(dataset, "ENSM", verdict, _MEMBERS if members[0] else "")


def _won(compared: tuple[int, list[str]]) -> str:
    n_known, worse = compared
    text = f"{n_known - len(worse)} of {n_known} metrics"
    return f"{text} (not: {'; '.join(worse)})" if worse else text


def _compared(ledger: _Ledger, dataset: str, method: str, *path: str) -> tuple[int, list[str]]:
    """Count the metrics that ensemble and method have, list those the ensemble does not win."""
    worse: list[str] = []
    n_known = 0
    for metric, (title, sign) in _EVERY.items():
        own = ledger.scores.mean(dataset, "ENSM", metric)
        other = ledger.scores.mean(dataset, method, *path, metric)
        if own is None or other is None:
            continue
        n_known += 1
        if sign * own >= sign * other:
            worse.append(f"{title} {shown(own, 3)} against {shown(other, 3)}")
    return n_known, worse


def _student(ledger: _Ledger, dataset: str) -> None:
    texts: dict[str, str] = {}
    goods: dict[str, bool] = {}
    students = ledger.students(dataset)
    for temperature, name in students.items():
        deltas = ledger.means(dataset, "delta1", name, "ENSM")
        errors = ledger.means(dataset, "rmse", name, "ENSM")
        if deltas is None or errors is None:
            continue
        gap, ratio = deltas[0] - deltas[1], errors[0] / errors[1]
        texts[temperature] = f"δ1 {signed(gap, 4)}, rmse {signed(100 * (ratio - 1), 1)} %"
        goods[temperature] = gap >= -_DELTA_GAP - ROUNDING and ratio <= _RMSE_RATIO + ROUNDING
    wanted = f"EnD2 within {_DELTA_GAP} δ1 and 2 % rmse of ENSM"
    found = f"EnD2 to ENSM: {_by_temperature(texts)}"
    verdict = Verdict(wanted, found, goods.get(next(iter(students))))
    ledger.add(dataset, "EnD2/accuracy", verdict, _caveat(texts))


def _likelihood(ledger: _Ledger, dataset: str) -> None:
    wanted, found = "EnD2's NLL below ENSM's (of the mixture) and Single's", ""
    is_good, texts, students = None, dict[str, str](), ledger.students(dataset)
    others = ledger.means(dataset, "nll", "ENSM", "Single")
    if others is not None:
        own = {t: ledger.scores.mean(dataset, name, "nll") for t, name in students.items()}
        texts = {t: shown(value, 3) for t, value in own.items() if value is not None}
        moments = ledger.scores.mean(dataset, "ENSM", "nll_moment_matched")
        found = f"NLL: EnD2 {_by_temperature(texts)}; ENSM {shown(others[0], 3)}"
        found += "" if moments is None else f" (by its moments {shown(moments, 3)})"
        found += f", Single {shown(others[1], 3)}"
        judged = own[next(iter(students))]
        is_good = None if judged is None else judged < min(others)
    ledger.add(dataset, "EnD2/nll", Verdict(wanted, found, is_good), _caveat(texts))


def _caveat(texts: Mapping[str, str]) -> str:
    """Return the caveat of a goal about students at several temperatures."""
    return _TEMPERATURE if len(texts) > 1 else ""


def _by_temperature(texts: Mapping[str, str]) -> str:
    """List texts by temperature, the judged one first."""
    return "; ".join(f"{text} ({temperature})" for temperature, text in texts.items())


class _Pair(NamedTuple):
    """A student's mutual information, and the best measure of knowledge of its ensemble."""

    dataset: str
    other: str
    student: float
    measure: str
    teacher: float

    @property
    def is_good(self) -> bool:
        return self.student >= self.teacher - ROUNDING

    @property
    def title(self) -> str:
        return f"{TITLES[self.dataset]} against {TITLES[self.other]}"

    @property
    def text(self) -> str:
        return f"{shown(self.student, 3)} to {shown(self.teacher, 3)} ({self.measure})"


def _knowledge(ledger: _Ledger) -> None:
    """Compare EnD2's mutual information with the best knowledge measure of its ensemble."""
    judged, others = _pairs(ledger, 0), _pairs(ledger, 1)
    for pair, other in zip(judged, others, strict=True):
        if pair is None:
            continue
        _add_pair(ledger, pair, other)
        if not pair.is_good and ledger.has_seeds(pair.dataset):
            line = f"{pair.title}, AUC of EnD2's I to ENSM's {pair.text}"
            ledger.misses.append(Miss(f"depth/{pair.dataset}/ood_auc/{pair.other}", line))
    count = tally([None if pair is None else pair.is_good for pair in judged])
    wanted = "Depth, OOD AUC: EnD2's I at least the ensemble's best of I, K and V[mu], in "
    wanted += f"{_PAIRS_NEEDED} of {count.total} pairs of sets"
    is_whole = all(ledger.has_seeds(dataset) for dataset in ledger.contents)
    state = state_of(count, _PAIRS_NEEDED) if is_whole or not count.measured else UNFINISHED
    found = _counted(judged, lambda pair: f"{pair.title} {pair.text}") if count.measured else ""
    is_compared = bool(found) and any(pair is not None for pair in others)
    if is_compared:
        at_other = _counted(others, lambda pair: shown(pair.student, 3))
        found += f"; at the other temperature {at_other}"
    ledger.goals.append(Goal(wanted, found, state).after_scores(_TEMPERATURE * is_compared))


def _add_pair(ledger: _Ledger, pair: _Pair, other: _Pair | None) -> None:
    """Add a verdict on a pair of sets, with the student of the other temperature beside it."""
    both = [pair] if other is None else [pair, other]
    temperatures = ledger.students(pair.dataset)
    texts = {t: shown(one.student, 3) for t, one in zip(temperatures, both, strict=False)}
    wanted = f"EnD2's I detects {TITLES[pair.other]} at least as well as ENSM's best measure"
    found = f"AUC: EnD2 {_by_temperature(texts)}; ENSM {shown(pair.teacher, 3)} ({pair.measure})"
    key = (pair.dataset, f"ood_auc/{pair.other}")
    ledger.verdicts[key] = Verdict(wanted, found, pair.is_good)


def _counted(pairs: Sequence[_Pair | None], text_of: Callable[[_Pair], str]) -> str:
    known = [pair for pair in pairs if pair is not None]
    n_good = sum(pair.is_good for pair in known)
    return f"{n_good} of {len(known)}: {'; '.join(text_of(pair) for pair in known)}"


def _pairs(ledger: _Ledger, place: int) -> list[_Pair | None]:
    """Collect pairs of a set and an OOD set, for the student that is judged (0) or the next (1)."""
    return [
        _pair(ledger.scores, name, dataset, other)
        for dataset in DEPTH_SETS
        for name in [[*ledger.students(dataset).values(), ""][place]]
        for other in OOD_SETS[dataset]
    ]


def _pair(scores: Scores, name: str, dataset: str, other: str) -> _Pair | None:
    student = scores.mean(dataset, name, "ood_auc", other, "mutual_information")
    known = {
        DEPTH_MEASURES[measure]: value
        for measure in KNOWLEDGE
        if (value := scores.mean(dataset, "ENSM", "ood_auc", other, measure)) is not None
    }
    if student is None or not known:
        return None
    best = max(known, key=lambda symbol: known[symbol])
    return _Pair(dataset, other, student, best, known[best])
