"""Describe the claim of a certificate in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any, Literal, NamedTuple

from trainer.certificate import OPTIMAL_GAP, Certificate, Guarantee, Limits, Status, proves
from trainer.editing.words import in_words, leaf_words, price_scale, price_words, wish_lines
from trainer.goal import COUNT_GOALS, Goal, score_name, stated_goal
from trainer.tree.describe import counted_words, is_weighted, number_text, weight_step
from trainer.tree.numbers import THIN, count_words, points_text

PROVED = "Proved optimal"
LEAST_COST = "Least cost, proved"
OBJECTIVE_PROVED = "Objective proved"
NO_BOUND = "No bound"
HEURISTIC = "Heuristic"
NOTHING = "No claim"
TRAINING_ONLY = "The claim is about the training rows and the trees that were searched, not about new rows."
SPLITS_TIP = "Each split is the best possible for the rows that reach it. That does not make the whole tree optimal."
SUBTREES_TIP = (
    "Each small subtree is the best possible for the rows that reach it, given the rest of the tree. "
    "That says nothing about how good the whole tree is."
)
CLASSES_NAMED = 6  # more class weights are counted, not named
ROW_DECIMALS = 6  # a price in rows is objective × rows, and the file rounds the objective

Kind = Literal["proved", "wishes", "gap", "heuristic"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim about a whole tree.

    Parameters
    ----------
    kind : str
        "proved": optimal in the whole search space; "wishes": optimal among the trees that keep the wishes;
        "gap": a bound that the tree does not meet; "heuristic": no bound.
    words : str
        A few words, for badges.
    explanation : str
        The meaning of the words, as a clause without a capital letter and without a full stop.
    scope : str
        The trees that the claim covers, with wishes in words.
    wishes : tuple of dict
        Each wish with its words, its price in rows and its reason, see `wish_lines`.
    price_rows : float or None
        The price of all wishes together, in rows; None without wishes, with costs, or if the optimum is not proved.
    price_words : str
        The same in words, in the unit of the costs if there are any, with "at least" if the optimum is not proved; empty
        without wishes.
    leaf_words : str
        What a leaf counts as in these prices, such as "8.16 rows"; empty without wishes, or if leaves cost nothing.
    """

    kind: Kind
    words: str
    explanation: str
    scope: str = ""
    wishes: tuple[dict[str, Any], ...] = ()
    price_rows: float | None = None
    price_words: str = ""
    leaf_words: str = ""

    @property
    def proved_optimal(self) -> bool:
        """Whether no tree of the search space is better; never true of a tree with wishes."""
        return self.kind == "proved"

    @property
    def sentence(self) -> str:
        """The claim as one sentence."""
        return f"{self.words}: {self.explanation}."

    @property
    def tip(self) -> str:
        """The explanation of the words, with the scope."""
        sentence = f"{self.explanation[0].upper()}{self.explanation[1:]}."
        return f"{sentence} Scope: {self.scope.rstrip('.')}." if self.scope else sentence


def read_claim(certificate: Mapping[str, Any]) -> Claim:
    """Return the claim about the whole tree.

    Parameters
    ----------
    certificate : Mapping
        The certificate of a model file, or the record of `train` together with the guarantee of its method.

    Returns
    -------
    Claim
        Without a certificate, the claim of a file that states nothing.
    """
    kind, words, explanation = _claim_texts(certificate)
    wishes = tuple(wish_lines(certificate))
    scope = scope_words(certificate)
    if not wishes:
        return Claim(kind=kind, words=words, explanation=explanation, scope=scope)
    least, proved, unit = price_of_wishes(certificate)
    wish_count = f"{len(wishes)} wish{'' if len(wishes) == 1 else 'es'}"
    words = f"Best with {wish_count}" if kind == "proved" else f"{words} with {wish_count}"
    price = price_words(least, unit)
    if least is not None:
        price = price if proved else f"at least {price}"
        words += f", {price}"
    leaf = leaf_words(certificate)
    counted = f", where a leaf counts as {leaf}" if leaf and least is not None else ""
    return Claim(
        kind="wishes" if kind == "proved" else kind,
        words=words,
        explanation=f"{explanation}. All wishes together: {price}{counted}",
        scope=scope,
        wishes=wishes,
        price_rows=least if proved and unit is None else None,
        price_words=price,
        leaf_words=leaf,
    )


class PartsClaim(NamedTuple):
    """The number of parts of a tree, splits or small subtrees, and how many of them are proved one by one."""

    proved: int
    total: int
    noun: str

    @property
    def words(self) -> str:
        """The numbers in a few words."""
        return f"{self.proved} of {self.total} {self.noun} proved"

    @property
    def tip(self) -> str:
        """The meaning of the words."""
        return SPLITS_TIP if self.noun == "splits" else SUBTREES_TIP

    @property
    def sentence(self) -> str:
        """The claim as one sentence."""
        if self.noun == "splits":
            return f"{self.proved} of {self.total} splits are proved best for the rows that reach them."
        return f"{self.proved} of {self.total} small subtrees are proved best in their places."


def parts_claim(certificate: Mapping[str, Any]) -> PartsClaim | None:
    """Return the claim about the parts of a tree; None if the method does not prove parts one by one."""
    noun = str(certificate.get("guarantee"))
    total = certificate.get(noun)
    if noun not in (Guarantee.SPLITS, Guarantee.SUBTREES) or not isinstance(total, int) or not total:
        return None
    proved = certificate.get(f"{noun}_proved")
    return PartsClaim(proved if isinstance(proved, int) else 0, total, noun)


class WishesPrice(NamedTuple):
    """The price of all wishes together."""

    least: float | None  # lower bound on the price
    proved: bool  # whether the bound equals the price
    unit: str | None  # unit of the costs; None if the price is in rows


def price_of_wishes(record: Mapping[str, Any]) -> WishesPrice:
    """Return the price of all wishes of a certificate, or of the record of a training."""
    optimum = record.get("optimum")
    objective = record.get("objective")
    scale, unit = price_scale(record)
    if not optimum or objective is None:
        return WishesPrice(None, False, unit)
    price = (optimum["objective"] - objective) * scale
    return WishesPrice(max(0.0, round(price, ROW_DECIMALS)), bool(optimum.get("proved")), unit)


def claim_words(certificate: Mapping[str, Any]) -> str:
    """Return the claim as one sentence: about the splits if these are proved one by one, else about the whole tree."""
    parts = parts_claim(certificate)
    if parts is not None:
        return parts.sentence
    return read_claim(certificate).sentence


def gap_words(gap: float | None) -> str:
    """Return the gap with its unit, or that there is none."""
    return NO_BOUND if gap is None else f"Gap {points_text(gap)}{THIN}%"


def scope_words(certificate: Mapping[str, Any]) -> str:
    """Return the scope of the claim, with wishes in words."""
    return wishes_in_words(str(certificate.get("scope") or ""), certificate)


def plain_scope(certificate: Mapping[str, Any]) -> str:
    """Return the searched trees in plain words: their questions in a row, and the wishes; empty if the scope has no depth."""
    depth = re.match(r"all trees with depth ≤ (\d+)", str(certificate.get("scope") or ""))
    if depth is None:
        return ""
    words = f"all trees of at most {count_words(int(depth[1]), 'question')} in a row"
    wishes = [f"“{in_words(record['wish'])}”" for record in certificate.get("wishes") or ()]
    if not wishes:
        return words
    return f"{words} that keep {'this wish' if len(wishes) == 1 else 'these wishes'}: {', '.join(wishes)}"


def wishes_in_words(text: str, certificate: Mapping[str, Any]) -> str:
    """Replace the quoted wishes of a text about a model file by their words."""
    for record in certificate.get("wishes") or ():
        text = text.replace(f"'{record['wish']}'", f"“{in_words(record['wish'])}”")
    return text


def objective_words(certificate: Mapping[str, Any]) -> str:
    """Describe the objective: the goal, the cost of answers, or the share of correct rows less the penalties."""
    if certificate.get("goal"):
        return goal_words(certificate)
    if certificate.get("costs"):
        priced = " + prices of the columns asked" if certificate.get("column_prices") else ""
        return _cost_words(certificate["costs"]) + priced
    rows_counted = "the weight of training rows" if is_weighted(certificate) else "training rows"
    words = f"share of {rows_counted} right − {certificate.get('leaf_penalty') or 0} × leaves"
    penalty = certificate.get("coefficient_penalty")
    words += f" − {penalty} × coefficients" if penalty else ""
    return words + (" − prices of the columns asked, in errors per row" if certificate.get("column_prices") else "")


def price_sentence(certificate: Mapping[str, Any]) -> str:
    """Describe the total price of the columns on the training rows; empty without prices."""
    prices = certificate.get("column_prices")
    if not prices:
        return ""
    unit = "" if certificate.get("costs") else " errors"
    if prices["unit"]:
        unit = f" {prices['unit']}"
    rows_counted = counted_words(certificate)
    parts = [
        f"{name} at {price}{unit} for {prices['paid'][name]:,} {rows_counted}"
        for name, price in prices["prices"].items()
    ]
    # without costs, the file counts errors in steps of weight, as it counts rows
    cost = prices["cost"] * (1.0 if certificate.get("costs") else weight_step(certificate))
    return f"Asking columns costs {number_text(cost)}{unit} on the training rows: {'; '.join(parts)}. A row pays once."


def goal_words(certificate: Mapping[str, Any]) -> str:
    """Describe the goal that replaces accuracy, with the price of a leaf; empty without such a goal."""
    if not certificate.get("goal"):
        return ""
    words = Goal.from_json(dict(certificate["goal"])).words()
    penalty = str(certificate.get("leaf_penalty") or "0")
    priced = certificate["goal"]["maximise"] in COUNT_GOALS and penalty != "0"
    return words + (f" − {penalty} × leaves" if priced else "")


def goal_sentence(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Describe balanced accuracy, F1 or MCC on the training rows, and what is proved; empty for other goals."""
    goal, positive = stated_goal(certificate, parameters)
    objective = certificate.get("objective")
    if not goal or objective is None:
        return ""
    name = score_name(goal, positive)
    price = Fraction(str(certificate.get("leaf_penalty") or "0"))
    reached = float(Fraction(objective) + price * int(certificate.get("leaves") or 0))
    value = number_text(reached, 4)
    bound = certificate.get("bound")
    error = (certificate.get("class_weights") or {}).get("error")
    if error and goal == "balanced":
        ends = f"{_score_end(reached - error, floor)} and {_score_end(reached + error, ceil)}"
        words = f"The {name} on the training rows is between {ends}, since class weights were rounded."
        if not price and bound is not None:
            words += f" No tree of this scope exceeds {_score_end(float(bound) + error, ceil)}."
        return words
    if read_claim(certificate).proved_optimal and not price:
        return f"The best {name} of any tree of this scope, on the training rows: {value}."
    words = f"The {name} on the training rows is {value}."
    after = f" after {number_text(float(price), 4)} for each leaf" if price else ""
    if read_claim(certificate).proved_optimal:
        return f"{words} No tree of this scope has a higher one{after}."
    return words if bound is None else f"{words} No tree of this scope exceeds {number_text(float(bound), 4)}{after}."


def _score_end(value: float, rounding: Callable[[float], int]) -> str:
    """Write an end of an interval of scores, rounded outward to five decimals."""
    return number_text(rounding(min(max(value, 0.0), 1.0) * 1e5) / 1e5, 5)


def rounded_classes_sentence(error: float) -> str:
    """Describe the error of rounded class weights, with two significant digits, rounded up."""
    scale = 10.0 ** (1 - floor(log10(error)))
    return f"Class weights were rounded: no mean of recalls differs by more than {number_text(ceil(error * scale) / scale, 2)}."


def _cost_words(costs: Mapping[str, Any]) -> str:
    """Describe the minimised costs, with those that differ from plain errors."""
    unit = f" {costs['unit']}" if costs["unit"] else ""
    price = f" + {number_text(costs['leaf_price'])}{unit} for each leaf" if costs["leaf_price"] else ""
    words = f"least cost of the answers to the training rows{unit and f' in{unit}'}{price}"
    if not costs["costs"]:
        return f"{words} (each row has its own costs)"
    pairs = [(true, answer, text) for true, row in costs["costs"].items() for answer, text in row.items()]
    pair_texts = [f"{true}>{answer}={text}" for true, answer, text in pairs if text != str(int(true != answer))]
    return f"{words} (true class>answer: {'; '.join(pair_texts) or 'errors'})"


def cost_sentence(costs: Mapping[str, Any], *, priced: bool = False, wishes: bool = False) -> str:
    """Describe the cost of a tree on the training rows, beside the best constant answer, and what is proved.

    `priced` says that the proved cost includes prices of columns, and `wishes` that the tree keeps wishes.
    """
    unit = f" {costs['unit']}" if costs["unit"] else ""
    constant = costs["best_constant"]
    words = (
        f"The answers cost {number_text(costs['cost'])}{unit} on the training rows, {number_text(costs['cost_per_row'])}{unit} per row. "
        f"Always answering {constant['answer']} costs {number_text(constant['cost'])}{unit}."
    )
    if costs["floor"]:
        words += f" No answer avoids {number_text(costs['floor'])}{unit}."
    if costs["least"] is not None:
        words += f" No tree of this scope{' that keeps the wishes' if wishes else ''} costs less than {number_text(costs['least'])}{unit}{_included_costs(costs, priced)}."
    if costs["rounding_error"]:
        words += f" Costs were rounded: any total may differ by up to {number_text(costs['rounding_error'])}{unit}."
    return words


def _included_costs(costs: Mapping[str, Any], priced: bool) -> str:
    """Describe what a proved cost includes beside the answers: " with its leaves and columns", or an empty text."""
    parts = [name for name, counts in (("leaves", costs["leaf_price"]), ("columns", priced)) if counts]
    return f" with its {' and '.join(parts)}" if parts else ""


def weight_sentence(certificate: Mapping[str, Any]) -> str:
    """Describe the row weights of a training, with numbers of rows and weights; "" if every row counts once."""
    weights = certificate.get("weights")
    if certificate.get("class_weights"):
        return _class_weight_sentence(certificate)
    if not weights:
        return ""
    step = Fraction(weights["step"])
    by = f"column '{weights['column']}'" if weights["column"] else "the sample weights"
    total = number_text(float(step * certificate["n"]), 4)
    correct = number_text(float(step * certificate["correct"]), 4)
    words = (
        f"Rows count by {by}: {count_words(weights['rows'], 'training row')} weigh {total}, and "
        f"{weights['correct_rows']:,} of them, which weigh {correct}, are right."
    )
    unit = "weights" if step == 1 else f"weights in steps of {number_text(float(step), 4)}"
    words += f" Counts at questions and leaves are {unit}; shares are of weight."
    error = certificate.get("weight_error")
    return f"{words} Weights were rounded: no share differs by more than {number_text(error)}." if error else words


def _class_weight_sentence(certificate: Mapping[str, Any]) -> str:
    """Describe the weights of balanced classes, with those of a weight column."""
    record = certificate["class_weights"]
    weights = certificate.get("weights")
    named = [f"{name} {number_text(float(Fraction(weight)), 4)}" for name, weight in record["weights"].items()]
    if len(named) > CLASSES_NAMED:
        named[CLASSES_NAMED:] = [count_words(len(named) - CLASSES_NAMED, "more class", "more classes")]
    row = "a row"
    if weights:
        row = f"each {number_text(float(Fraction(weights['step'])), 4)} of {'column ' + repr(weights['column']) if weights['column'] else 'the sample weights'}"
    words = (
        f"Classes are balanced: {row} counts as a weight that makes all classes equally heavy ({', '.join(named)}). "
        f"{count_words(record['rows'], 'training row')} weigh {certificate['n']:,}, and {record['correct_rows']:,} of them, which weigh "
        f"{certificate['correct']:,}, are right. Counts at questions and leaves are these weights; shares are of weight. "
        f"Unseen rows count {'by their own weights' if weights else 'once each'}."
    )
    if record.get("error"):
        words += f" {rounded_classes_sentence(record['error'])}"
    error = certificate.get("weight_error")
    return f"{words} Weights were rounded: no share differs by more than {number_text(error)}." if error else words


def size_sentence(sizes: Mapping[str, Any], unit: str = "") -> str:
    """Describe how the training chose the number of leaves.

    `sizes` is the record in the model file, `unit` the unit of the costs.
    """
    chosen_size = next((one for one in sizes["tried"] if one["chosen"]), None)
    if chosen_size is None:
        return f"Size: not chosen by the data, every leaf is allowed (leaf penalty 0). {sizes['reason']}"
    others = [
        f"{count_words(one['leaves'], 'leaf', 'leaves')} {unseen_words(one['unseen'], sizes['measure'], unit)}"
        for one in sizes["tried"]
        if not one["chosen"]
    ]
    words = (
        f"Size chosen by the data: {count_words(chosen_size['leaves'], 'leaf', 'leaves')} "
        f"(leaf penalty {number_text(chosen_size['leaf_penalty'])}). "
        f"Training rows that were set aside: {unseen_words(chosen_size['unseen'], sizes['measure'], unit)}"
    )
    return f"{words}; {', '.join(others)}." if others else f"{words}."


def unseen_words(value: float, measure: str, unit: str = "") -> str:
    """Describe the accuracy, or the cost per row, of a size on rows that were set aside."""
    if measure == "accuracy":
        return f"{points_text(value)} % right"
    return f"cost {number_text(value, 4)}{unit and ' '}{unit} a row"


def saving_sentence(certificate: Mapping[str, Any]) -> str:
    """Describe the saving of a tree on the training rows against the best constant answer, and whether it is optimal."""
    costs = certificate["costs"]
    constant = costs["best_constant"]
    unit = f" {costs['unit']}" if costs["unit"] else ""
    rows = (certificate.get("weights") or {}).get("rows", certificate["n"])
    words = (
        f"The tree saves {number_text(constant['cost'] - costs['cost'])}{unit} on the {rows:,} training rows against always "
        f"answering {constant['answer']}"
    )
    if certificate.get("guarantee") == Guarantee.TREE and proves(
        str(certificate.get("status")), certificate.get("gap")
    ):
        included = _included_costs(costs, bool(certificate.get("column_prices")))
        words += "; no tree of this scope saves more" + included.replace(" with", " after the price of", 1)
    return f"{words}."


def reward_sentence(record: Mapping[str, Any]) -> str:
    """Describe the reward of a tree on the training rows, beside the best constant answer, from the record of `train`."""
    unit = f" {record['reward_unit']}" if record["reward_unit"] else ""
    best = record["best_constant_reward"]
    return (
        f"The answers earn {number_text(record['reward'])}{unit} on the training rows, {number_text(record['reward_per_row'])}{unit} per row. "
        f"Always answering {best['answer']} earns {number_text(best['reward'])}{unit}. Below, a cost is what the best answer of a row earns more."
    )


def _claim_texts(certificate: Mapping[str, Any]) -> tuple[Kind, str, str]:
    """Return kind, words and explanation of what is proved, without the number of wishes and their price."""
    guarantee = certificate.get("guarantee")
    gap = certificate.get("gap")
    others = "tree that was searched" + (" and keeps the wishes" if certificate.get("wishes") else "")
    counts_costs = bool(certificate.get("costs")) or "cost" in certificate
    better = "costs less on the training rows" if counts_costs else _better_words(certificate)
    if guarantee is None:
        return "heuristic", NOTHING, "the file states nothing about how good the tree is"
    if guarantee != Guarantee.TREE:
        return "heuristic", HEURISTIC, "nothing is claimed about how close the tree is to the best one"
    if proves(str(certificate.get("status")), gap):
        return "proved", LEAST_COST if counts_costs else PROVED, f"no {others} {better}"
    open_part = str(certificate.get("unproved") or "")
    if open_part and gap is not None and gap <= OPTIMAL_GAP:
        return "gap", OBJECTIVE_PROVED, f"no {others} {better}. Not proved: {open_part}"
    if gap is None:
        return "heuristic", gap_words(None), "the search ended before anything was proved"
    if counts_costs:
        return "gap", gap_words(gap), f"no {others} costs less than {_least_words(certificate)} on the training rows"
    bound = certificate.get("bound")
    bound_text = "the bound" if bound is None else number_text(float(bound), 6)
    return "gap", gap_words(gap), f"no {others} has an objective above {bound_text} on the training rows"


def _better_words(certificate: Mapping[str, Any]) -> str:
    """Return what no other tree does: get more rows right, if only rows and leaves count, else have a better objective."""
    others = ("goal", "weights", "class_weights", "coefficient_penalty", "column_prices")
    if "leaf_penalty" not in certificate or any(certificate.get(name) for name in others):
        return "has a better objective on the training rows"
    priced = str(certificate["leaf_penalty"] or "0") != "0"
    return "gets more training rows right" + (" without more leaves" if priced else "")


def _least_words(certificate: Mapping[str, Any]) -> str:
    """Return the proved lower bound of the cost in its unit, from a certificate or the record of `train`."""
    costs = certificate.get("costs") or certificate
    unit = costs.get("unit") or costs.get("cost_unit") or ""
    least = costs.get("least")
    return "the bound" if least is None else f"{number_text(least)} {unit}".strip()


def limit_warning(certificate: Certificate, limits: Limits) -> str:
    """Return the warning for a search that a limit ended before its proof, or an empty text.

    The warning names the limit, what is proved, and what to do.
    """
    names = {
        Status.TIME_LIMIT: ("time_limit", f"time_limit of {number_text(limits.time or 0)} s"),
        Status.MEMORY_LIMIT: ("memory_limit", f"memory_limit of {limits.memory} MB"),
    }
    if certificate.status not in names or certificate.guarantee == Guarantee.HEURISTIC:
        return ""
    parameter, limit = names[certificate.status]
    proved = claim_words(certificate.to_json())
    return f"The search reached its {limit} before its proof. {proved} Raise {parameter}, or ask for a smaller tree."
