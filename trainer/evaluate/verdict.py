"""Judge a tree from its model file, and recommend one next step.

Pages, the API and the command line all show these sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trainer.constraints import CONSTRAINTS
from trainer.data.inspection import required_leak_share
from trainer.evaluate.intervals import mcnemar
from trainer.methods.base import Settings
from trainer.training import single_leaf
from trainer.training.claims import read_claim
from trainer.training.metrics import unseen_accuracy
from trainer.tree.describe import is_weighted, weight_step
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree
from trainer.tree.numbers import THIN, number_text, points_text

CHANCE = 0.05  # with a larger p-value, the verdict treats a difference as chance
LEARNED_NOISE = 0.03  # if training accuracy exceeds unseen accuracy by more, the verdict warns

MOST_PENALTY = 0.999  # largest leaf penalty that the methods accept
# follows a doubt about a tree that is proved optimal
PROOF_WORDS = "The proof is about its training rows, not about new ones."

Kind = Literal["unknown", "constant", "worse", "other_aim", "chance", "leak", "single", "noise", "open", "good"]
_DOUBTED = ("other_aim", "worse", "chance", "leak", "single", "noise")


@dataclass(frozen=True, kw_only=True)
class BaseRate:
    """Accuracy of always predicting the most frequent training class.

    Parameters
    ----------
    label : str
        The most frequent class of the training rows.
    share : float
        Between 0 and 1.
    unseen : bool
        Whether it is counted on the unseen rows; otherwise on the training rows.
    """

    label: str
    share: float
    unseen: bool

    def to_json(self) -> dict[str, Any]:
        """Return the record of `train --json` and of the API."""
        return {"class": self.label, "share": self.share, "rows": "unseen" if self.unseen else "training"}


@dataclass(frozen=True, kw_only=True)
class CostRate:
    """What the answers cost per row, or per unit of weight, if training minimised costs.

    Parameters
    ----------
    unit : str
        The unit of the costs; may be empty.
    tree, constant : float
        The cost of the answers of the tree, and of always giving `answer`, the cheapest answer on the training rows.
    answer : str
    interval : sequence of float or None
        The 95 % interval of `tree` on unseen rows.
    """

    unit: str
    tree: float
    constant: float
    answer: str
    interval: Sequence[float] | None

    @property
    def saves(self) -> bool:
        """Whether the answers of the tree cost less than the one answer."""
        return self.tree < self.constant

    def words(self, value: float) -> str:
        """Return a cost with its unit."""
        return number_text(value) + (f"{THIN}{self.unit}" if self.unit else "")


@dataclass(frozen=True, kw_only=True)
class TreeVerdict:
    """The verdict on a tree: whether it is better than no tree, and the recommended next step.

    Parameters
    ----------
    kind : str
        The branch of the rule, see docs/verdict.md.
    sentence : str
        One or two sentences for readers who know nothing about trees.
    next : str
        What to do next, as one sentence.
    base_rate : BaseRate or None
        None where the file has no rows.
    """

    kind: Kind
    sentence: str
    next: str
    settings: dict[str, Any]
    base_rate: BaseRate | None

    @property
    def good(self) -> bool:
        """Whether the verdict recommends approval."""
        return self.kind == "good"

    @property
    def warns(self) -> bool:
        """Whether the verdict names a problem."""
        return self.kind not in ("good", "unknown")

    @property
    def no_better(self) -> bool:
        """Whether the tree is no better than one answer for all rows, or may be so by chance."""
        return self.kind in ("constant", "worse", "chance")

    def to_json(self) -> dict[str, Any]:
        """Return the record of `train --json` and of the API."""
        return {"kind": self.kind, "sentence": self.sentence, "next": self.next, "settings": self.settings}


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Accuracy of the tree and of the best single answer on the same rows."""

    confusion: np.ndarray  # int64 (classes, classes), by actual class and answer
    most: int  # class of the single answer
    accuracy: float  # accuracy of the tree; with folds, the mean over folds
    interval: Sequence[float] | None
    in_folds: bool  # whether every row was judged once, in some fold
    dependent: bool  # whether the interval accounts for groups or times

    @property
    def base(self) -> int:
        return int(self.confusion[self.most].sum())

    @property
    def base_share(self) -> float:
        return float(self.base / self.confusion.sum())

    @property
    def may_be_chance(self) -> bool:
        """Whether chance may explain the difference between the tree and the single answer.

        McNemar's exact test on independent rows; the interval over groups or times decides for dependent rows.
        """
        if self.dependent and self.interval is not None:
            return self.interval[0] <= self.base_share
        both = int(self.confusion[self.most, self.most])
        return mcnemar(int(np.trace(self.confusion)) - both, self.base - both) > CHANCE


def base_rate(model: ModelFile) -> BaseRate | None:
    """Return the accuracy of always answering the most frequent training class; None without counts.

    It is counted on the unseen rows if the file counts them by class, else on the training rows.
    """
    unseen = _unseen_rows(model)
    if unseen is None:
        return training_base_rate(model)
    return BaseRate(label=model.tree.classes[_most_frequent(model)], share=unseen.base_share, unseen=True)


def training_base_rate(model: ModelFile) -> BaseRate | None:
    """Return the accuracy of always answering the most frequent training class on the training rows; None without counts."""
    root = model.tree.nodes[0]
    most = _most_frequent(model)
    if not root.rows:
        return None
    return BaseRate(label=model.tree.classes[most], share=root.counts[most] / root.rows, unseen=False)


def cost_rate(model: ModelFile, *, unseen: bool) -> CostRate | None:
    """Return what the answers cost per held-out row, or per training row; None without costs or such rows."""
    costs = model.certificate.get("costs")
    metrics = model.metrics.get("test" if unseen else "train") or {}
    if not costs or "cost" not in metrics or not metrics.get("n"):
        return None
    weight = metrics["n"] * weight_step(model.certificate)
    return CostRate(
        unit=costs["unit"],
        tree=metrics["cost"] / weight,
        constant=metrics["constant_cost"] / weight,
        answer=costs["best_constant"]["answer"],
        interval=metrics.get("cost_interval"),
    )


def training_base_words(tree: Tree, certificate: Mapping[str, Any] | None = None) -> str:
    """Return a sentence on how many training rows the most frequent class gets right; "" without counts.

    With the `certificate` of a model whose rows have weights, it is the share of their weight.
    """
    root = tree.nodes[0]
    if not root.rows:
        return ""
    most = max(range(len(tree.classes)), key=lambda k: root.counts[k])
    words = f"Always the most frequent class, “{tree.classes[most]}”:"
    if is_weighted(certificate or {}):
        share = points_text(root.counts[most] / root.rows)
        return f"{words} {share}{THIN}% of the weight of the training rows is right."
    return f"{words} {root.counts[most]:,} of {root.rows:,} training rows are right."


def read_verdict(model: ModelFile) -> TreeVerdict:
    """Return the verdict on a model.

    Parameters
    ----------
    model : ModelFile
        Its metrics, certificate and counts are read, no row of a table.

    Returns
    -------
    TreeVerdict
        The first branch of docs/verdict.md that holds.
    """
    finding = _judge(model)
    column = leaking_column(model.tree)
    if column and finding.kind in ("unknown", "single", "noise", "open", "good"):
        finding = _Finding("leak", f"{finding.sentence} {_leak_words(model.tree, column)}", "leak")
    step = _after_choice(model, finding.step)
    settings = _SETTINGS[step](model.parameters) if step in _SETTINGS else {}
    words = _STEPS[step]
    if finding.kind == "leak":
        words = f"Look at “{column}”: was it known before the outcome? If not, leave it out."
    if settings:
        examples = " and ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())
        words = f"{words.removesuffix('.')}, for example {examples}."
    sentence = finding.sentence
    rate = base_rate(model)
    # both the doubt and the proof are then about training rows, so the sentence on the proof adds nothing
    on_training_rows = rate is not None and not rate.unseen
    if finding.kind in _DOUBTED and not on_training_rows and read_claim(model.certificate).proved_optimal:
        sentence = f"{sentence} {PROOF_WORDS}"
    return TreeVerdict(kind=finding.kind, sentence=sentence, next=words, settings=settings, base_rate=rate)


def leaking_column(tree: Tree) -> str:
    """Return the column of the first question if it alone gives the class of nearly all training rows; else "".

    Parameters
    ----------
    tree : Tree
        Its questions from the first one on count as long as they ask this column alone.

    Returns
    -------
    str
        A name, or "" if no column alone reaches the share of `required_leak_share`.
    """
    root = tree.nodes[0]
    if root.split is None or not root.rows or len(root.split.used) != 1:
        return ""
    baseline = max(root.counts) / root.rows
    right = sum(max(tree.nodes[node].counts) for node in _ends_of_column(tree))
    return tree.schema[root.split.used[0]].name if right >= required_leak_share(baseline) * root.rows else ""


def _ends_of_column(tree: Tree) -> list[int]:
    """Return the first nodes below the root that do not ask its column."""
    root = tree.nodes[0]
    assert root.split is not None
    ends = []
    waiting = [0]
    while waiting:
        v = tree.nodes[waiting.pop()]
        if v.split is None or v.split.used != root.split.used:
            ends.append(v.id)
        else:
            waiting += [v.left, v.right]
    return ends


def _leak_words(tree: Tree, column: str) -> str:
    right = sum(max(tree.nodes[node].counts) for node in _ends_of_column(tree))
    share = points_text(right / tree.nodes[0].rows)
    return f"“{column}” alone gives the class of {share}{THIN}% of its training rows, so it may have been known only after the outcome."


def summary_members(model: ModelFile) -> dict[str, Any]:
    """Return the members `base_rate` and `verdict` of `train --json`."""
    rate = base_rate(model)
    return {"base_rate": None if rate is None else rate.to_json(), "verdict": read_verdict(model).to_json()}


def _after_choice(model: ModelFile, step: str) -> str:
    """Replace the step if the training chose the number of leaves: it has judged other sizes already."""
    tried = (model.sizes or {}).get("tried") or ()
    chosen_leaves = next((one["leaves"] for one in tried if one["chosen"]), None)
    if chosen_leaves is None:
        return step
    if step == "more":
        return "columns" if any(one["leaves"] > chosen_leaves for one in tried) else step
    if step == "one" and any(1 < one["leaves"] < chosen_leaves for one in tried):
        return "sizes"
    # on the rows set aside, every smaller tree was worse by more than one standard error, so more rows are the next
    # step
    return "more_rows" if step in ("less", "one") else step


def _less(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for a smaller tree: depth less 1, or five times the leaf penalty if depth has no limit."""
    depth = parameters.get("depth")
    if _is_any_depth(parameters):
        return {"leaf_penalty": min(MOST_PENALTY, float(f"{5 * float(parameters['leaf_penalty']):.3g}"))}
    return {"depth": depth - 1} if isinstance(depth, int) and depth > 1 else {}


def _one(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for a tree of one split."""
    return {"depth": 1} if isinstance(parameters.get("depth"), int) or _is_any_depth(parameters) else {}


def _is_any_depth(parameters: Mapping[str, Any]) -> bool:
    """Return whether trees of any depth were searched, which needs a leaf penalty."""
    return parameters.get("depth", 0) is None and bool(parameters.get("leaf_penalty"))


def _more(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for a larger tree: a fifth of the leaf penalty, or depth plus 1 without one."""
    penalty = float(parameters.get("leaf_penalty") or 0)
    if penalty:
        return {"leaf_penalty": float(f"{penalty / 5:.3g}")}
    depth = parameters.get("depth")
    return {"depth": depth + 1} if isinstance(depth, int) else {}


FOLDS_ADVICE = "Cross-validate, so that every row counts once as unseen, or add rows."
_STEPS = {
    "approve": "Ask for approval.",
    "hold_out": "Train again with held-out rows or cross-validation.",
    "less": "Try a smaller tree.",
    "one": "Try a smaller tree.",
    "sizes": "Compare it with the smaller trees that the training tried.",
    "setting": "Change this setting.",
    "more": "Allow a larger tree.",
    "wishes": "Take a wish back.",
    "columns": "Add columns that tell the classes apart, or more rows.",
    "rows": FOLDS_ADVICE,
    "more_rows": "Add rows, or columns that tell the classes apart.",
    "classes": "Look at the mistakes of each class.",
    "leak": "Look at the column of the first question.",
    "time": "Give the search more time.",
}
_SETTINGS = {"less": _less, "one": _one, "more": _more}


@dataclass(frozen=True)
class _Finding:
    kind: Kind
    sentence: str
    step: str  # key of an entry of `_STEPS`


def _judge(model: ModelFile) -> _Finding:
    if model.tree.nodes[0].is_leaf:
        return _judge_leaf(model)
    if model.certificate.get("costs"):
        return _judge_costs(model)
    unseen = _unseen_rows(model)
    return _judge_training(model) if unseen is None else _judge_unseen(model, unseen)


def _judge_leaf(model: ModelFile) -> _Finding:
    """Judge a tree without splits."""
    root = model.tree.nodes[0]
    answer = model.tree.classes[root.label]
    rate = base_rate(model)
    share = ""
    unseen_cost = cost_rate(model, unseen=True)
    cost = unseen_cost or cost_rate(model, unseen=False)
    if cost is not None:
        share = f", which costs {cost.words(cost.tree)} for each {'training' if unseen_cost is None else 'new'} row"
    elif rate is not None and rate.label == answer:
        share = f", which is right for {points_text(rate.share)}{THIN}% of {_weight_words(model)}{'new' if rate.unseen else 'its training'} rows"
    words = f"It asks nothing and always answers “{answer}”{share}. {single_leaf.reason(model)}"
    if sum(n > 0 for n in root.counts) < 2:
        return _Finding("constant", words, "columns")
    if single_leaf.forbidding(model):
        return _Finding("constant", words, "setting")
    return _Finding("constant", words, "wishes" if model.certificate.get("wishes") else "more")


def _judge_training(model: ModelFile) -> _Finding:
    """Judge by the training rows alone: they can show that the tree is no better than one answer, not that it is better."""
    rate = base_rate(model)
    if rate is None:
        return _Finding(
            "unknown", "The file counts no rows, so nothing is known about how often the tree is right.", "hold_out"
        )
    right = sum(leaf.counts[leaf.label] for leaf in model.tree.leaves) / model.tree.nodes[0].rows
    compared = (
        f"Right for {points_text(right)}{THIN}% of {_weight_words(model)}its training rows; always answering “{rate.label}” is right for "
        f"{points_text(rate.share)}{THIN}%."
    )
    if right > rate.share:
        return _Finding("unknown", f"{compared} Nothing is known about new rows.", "hold_out")
    if aim := _other_aim(model):
        return _Finding("other_aim", f"{compared} It was trained for something else: {aim}.", "classes")
    return _Finding("worse", f"{compared} The tree is no better than this one answer.", "columns")


def _judge_unseen(model: ModelFile, unseen: _Measured) -> _Finding:
    """Judge by the unseen rows: those of all folds, or the held-out ones."""
    label = model.tree.classes[unseen.most]
    base = points_text(unseen.base_share)
    compared = f"Right for {points_text(unseen.accuracy)}{THIN}% of {_weight_words(model)}new rows; always answering “{label}” is right for {base}{THIN}%."
    noise = _noise(model, unseen)
    aim = _other_aim(model)
    worse = int(np.trace(unseen.confusion)) <= unseen.base
    if aim and (worse or unseen.may_be_chance):
        return _Finding("other_aim", f"{compared} It was trained for something else: {aim}.", "classes")
    if worse:
        words = f"{compared} The tree is no better than this one answer."
        return _Finding("worse", words, "less" if noise else "columns")
    if unseen.may_be_chance:
        next_step = "more_rows" if unseen.in_folds else "rows"
        if noise:
            next_step = "less"
        return _Finding("chance", f"{compared} The difference may be chance.", next_step)
    if single := _single_question(model, unseen):
        return _Finding("single", f"{compared} {single}", "one")
    if noise:
        words = f"{compared} On its training rows it is right {noise} more often: it fits these rows too closely."
        return _Finding("noise", words, "less")
    return _open_or_good(model, compared)


def _judge_costs(model: ModelFile) -> _Finding:
    """Judge by the costs of the answers, which the training minimised."""
    unseen = cost_rate(model, unseen=True)
    rate = unseen or cost_rate(model, unseen=False)
    if rate is None:
        return _Finding("unknown", "What its answers cost is not known.", "hold_out")
    compared = (
        f"Its answers cost {rate.words(rate.tree)} for each {'training' if unseen is None else 'new'} row; always answering “{rate.answer}” "
        f"costs {rate.words(rate.constant)}."
    )
    if unseen is None:
        return _Finding("unknown", f"{compared} Nothing is known about new rows.", "hold_out")
    if not unseen.saves:
        return _Finding("worse", f"{compared} The tree saves nothing against this one answer.", "less")
    return _open_or_good(model, compared)


def _open_or_good(model: ModelFile, compared: str) -> _Finding:
    claim = read_claim(model.certificate)
    if claim.kind == "gap":
        return _Finding("open", f"{compared} A better tree may exist: {claim.explanation}.", "time")
    if claim.kind == "wishes":
        words = f"{compared} It keeps what people asked for; on training rows that costs {claim.price_words}."
        return _Finding("good", words, "approve")
    return _Finding("good", compared, "approve")


def _weight_words(model: ModelFile) -> str:
    """Return "the weight of " if a column weights the rows, so that shares are shares of weight; else ""."""
    return "the weight of " if model.certificate.get("weights") else ""


def _unseen_rows(model: ModelFile) -> _Measured | None:
    """Return the counts of the unseen rows, of all folds or else held out; None if the file has no confusion matrix."""
    crossed, test = (model.metrics.get(name) or {} for name in ("cross_validation", "test"))
    metrics = crossed if crossed.get("accuracy") is not None else test
    accuracy = unseen_accuracy(model.metrics)
    counts = np.array(metrics.get("confusion") or (), np.int64)
    if accuracy is None or not counts.any():
        return None
    return _Measured(
        confusion=counts,
        most=_most_frequent(model),
        accuracy=metrics["accuracy"],
        interval=accuracy["interval"],
        in_folds=metrics is crossed,
        dependent="interval" in metrics,
    )


def _most_frequent(model: ModelFile) -> int:
    return int(np.argmax(model.tree.nodes[0].counts))


def _noise(model: ModelFile, unseen: _Measured) -> str:
    """Return by how many points training accuracy exceeds unseen accuracy.

    Returns "" unless it lies above the interval of the unseen accuracy, and by more than LEARNED_NOISE above that accuracy.
    """
    train = (model.metrics.get("train") or {}).get("accuracy")
    interval = unseen.interval
    if train is None or interval is None or train <= interval[1] or train - unseen.accuracy <= LEARNED_NOISE:
        return ""
    return f"{100 * (train - unseen.accuracy):.1f} points"


def _single_question(model: ModelFile, unseen: _Measured) -> str:
    """Return a sentence if the best single split gets at least as many unseen rows right as this larger tree; else ""."""
    single = model.certificate.get("single_question") or {}
    n = single.get("n")
    if model.tree.n_leaves <= 2 or not n or n != int(unseen.confusion.sum()) or _other_aim(model):
        return ""
    if single["correct"] < int(np.trace(unseen.confusion)):
        return ""
    share = points_text(single["correct"] / n)
    return f"One question does as well: the best one alone is right for {share}{THIN}%."


def _other_aim(model: ModelFile) -> str:
    """Return the aims of the training besides accuracy that one answer for all rows cannot meet; "" without any."""
    settings = model.parameters
    aims = ["a stated goal"] if model.certificate.get("goal") else []
    if settings.get("class_weight") not in (None, "none"):
        aims.append("all classes alike, however rare")
    for p in CONSTRAINTS:
        if p.name in settings and p.restricts is not None and not p.one_leaf:
            aims += p.restricts(Settings(settings))
    return " and ".join(aims)
