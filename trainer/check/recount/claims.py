"""The certificate: status, gap and what is said to be optimal, line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import OBLIQUE, ModelTable, active_parameter, read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, Verdict, proof_finding, recounted, unjudged
from trainer.check.recount.frontiers import frontier
from trainer.check.recount.listed import optimal_trees
from trainer.check.recount.search import small
from trainer.check.recount.search.planes import ceiling, disputed, errors_in_planes, groups
from trainer.check.recount.structure import METHODS
from trainer.check.recount.trees.counts import penalty

GOALS = {
    "sensitivity": "the least sensitivity", "specificity": "the least specificity", "weight": "the weight of the other class",
}  # fmt: skip
MANY = "It is about many trees, which were not searched again."
THINNED = 2000  # pairs of a frontier, of which a file may leave some out
MOST_WISHES = 10  # beyond which prices are not searched again
CLOSED = Fraction(1, 10**6)  # a gap that is called closed
STATUSES = {"optimal", "time_limit", "memory_limit", "cancelled", "heuristic", "secret_counts"}
ASIDE = "solver solver_version seconds nodes cuts warm_start_objective unproved note weight_error unseen_looks single_question"
# what a line of this checker is about; a file may say more, which is named and not judged
# `training_rows`: digests in files of earlier versions, which no reader uses
PARTS = """format format_version version name method target classes columns nodes parameters metrics certificate fingerprint rows
    reading training_rows contract sizes"""
CERTIFICATE = """method guarantee status objective bound gap mip_gap scope splits_proved splits correct n leaves depth leaf_penalty evidence
    coefficient_penalty goal wishes optimum costs column_prices weights counts"""
SETS = "train test cross_validation"
METRICS = "n correct accuracy confusion folds finished ended accuracies deviation leaves groups interval by_fold rows"
ROWS = "used held_out folds weights fold_trees fold_questions costs group time weight"
COLUMN = "name kind categories missing unit special decimals change_unit fill fill_seen"
COST_METRICS = "cost cost_per_row constant_cost cost_confusion cost_interval saved_interval"
COSTS = "unit costs step rounding_error cost cost_per_row floor leaf_price best_constant least"
WEIGHTS = "column step rows correct_rows"
COLUMN_PRICES = "unit prices paid cost"
GOAL = "positive maximise weight sensitivity specificity"
WISH = "wish price reason"
OPTIMUM = "objective bound proved objective_cost"
READING = "delimiter encoding top bottom width columns given"
READ = (
    "taken_for reason decimal thousands unit negative form origin clock zone missing spellings choices question given"
)
POINT = "leaves branchings coefficients correct bound proved tree"
EVIDENCE = {
    "dynamic-programming": "cost bound depth_two_subtrees cache_entries cache_evictions", "interval-pruning": "cost bound",
    "wishes": "cost bound", "leaf-frontier": "n most points unsettled", "coefficient-frontier": "n points",
    "frontier": "positive positives negatives pairs proved finished status bounds", "optimal-trees": "count listed",
}  # fmt: skip
NODE = "id counts split left right class impurity impurity_bound measure"
TOLD = "mip bound-met cases subset-search topology-choice greedy proof distance planes goal-search"  # of the search; `bound` counts planes again

# of a part of the file: how it is called, its members, and the names of those that are known
Place = tuple[str, dict[str, Any], str]


def status(model: dict[str, Any]) -> Finding:
    """Whether the status is one that this method, bound and gap may have."""
    certificate = model["certificate"]
    own, bound, gap = (certificate.get(name) for name in ("status", "bound", "gap"))
    guarantee = METHODS[model["method"]][0]
    wanted = read_fraction(certificate.get("mip_gap") or 0)
    trouble = ""
    if own not in STATUSES:
        trouble = f"There is no status '{str(own)[:40]}'."
    elif wanted != read_fraction(model["parameters"].get("mip_gap") or 0):
        trouble = f"The parameters do not ask for a gap of {certificate['mip_gap']}."
    elif own == "optimal" and guarantee != "tree":
        trouble = f"'{model['method']}' proves no tree optimal."
    elif own == "optimal" and (bound is None or gap is None):
        trouble = "'optimal' is said without a bound and a gap."
    elif own == "optimal" and certificate.get("unproved"):
        trouble = "'optimal' is said although a part of the claim is open."
    elif guarantee != "tree" and (bound is not None or gap is not None):
        trouble = f"'{model['method']}' has no bound for the whole tree."
    words = f"'{own}'" + (f" (a gap of {certificate['mip_gap']} was asked for)" if wanted else "")
    return recounted("status", not trouble, trouble or words)


def prices(model: dict[str, Any], sizes: Sequence[int], scale: Fraction) -> Finding:
    """What is maximised is what the parameters ask for: the price of a leaf, of a coefficient, and the required shares.

    `sizes`: the weights of the classes. `scale`: what the leaf penalty is multiplied by, see `leaf_scale`.
    """
    certificate = model["certificate"]
    given = model["parameters"]
    leaf = read_fraction(given.get("leaf_penalty") or 0) * scale
    if given.get("paper_lambda") is not None:
        weight = read_fraction(given["paper_lambda"])
        leaf = weight / (1 - weight) / sum(sizes)
    pairs = [(leaf, penalty(model), "the price of a leaf")]
    extra = certificate.get("coefficient_penalty")
    pairs.append(
        (read_fraction(given.get("coefficient_penalty") or 0), read_fraction(extra or 0), "the price of a coefficient")
    )
    goal = certificate.get("goal") or {}
    wanted = _goal(model, sizes) if model["method"] == "odt" else _count_goal(model, sizes)
    goal = goal and {"weight": 1} | goal
    for name, words in GOALS.items():
        asks, has = (-1 if of.get(name) is None else of[name] for of in (wanted, goal))
        pairs.append((read_fraction(asks), read_fraction(has), words))
    odd = next((words for wanted, own, words in pairs if abs(wanted - own) > TOLERANCE), "")
    odd = next((words for _, own, words in pairs[:2] if own < 0), odd)  # no training rewards leaves
    if any(wanted.get(name) != goal.get(name) for name in ("positive", "maximise")):
        odd = "the positive class, or the goal"
    odd = odd or _goal_contradiction(model)
    words = f"The parameters ask otherwise for {odd}." if odd else "As the parameters ask."
    return recounted("what is maximised", not odd, words)


def _count_goal(model: dict[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """F1 or MCC where the parameters ask for it, of the class of less weight if they name none, the last one among equals."""
    name = active_parameter(model, "goal")
    if name not in ("f1", "mcc"):
        return {}
    rarest = max(k for k, size in enumerate(sizes) if size == min(sizes))
    positive = str(active_parameter(model, "positive") or "").strip() or model["classes"][rarest]
    return {"positive": positive, "maximise": name, "weight": 1}


def _goal_contradiction(model: dict[str, Any]) -> str:
    """What no training takes beside the goal of the parameters; empty if there is nothing."""
    name = active_parameter(model, "goal") or "auto"
    if name not in ("auto", "accuracy", "costs", "balanced", "f1", "mcc"):
        return f"the goal '{str(name)[:40]}', which does not exist"
    if model["method"] != "odt" and active_parameter(model, "positive") and name not in ("f1", "mcc"):
        return f"a positive class beside the goal '{name}'"
    balanced = active_parameter(model, "class_weight") == "balanced"
    if (name == "balanced") > balanced or (balanced and name not in ("auto", "balanced")):
        return f"class weights beside the goal '{name}'"
    costs = bool(str(active_parameter(model, "costs") or "").strip())
    return f"costs beside the goal '{name}'" if name != "auto" and costs != (name == "costs") else ""


def _goal(model: dict[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """What is maximised in place of accuracy, as the parameters ask; nothing if it is accuracy."""
    shares = {name: active_parameter(model, name) for name in ("sensitivity", "specificity")}
    text = str(active_parameter(model, "negative_weight") or "1").strip()
    given = [n for n, v in shares.items() if v is not None]
    if not given and text == "1" and not active_parameter(model, "frontier"):
        return {}
    positive = str(active_parameter(model, "positive") or "").strip() or model["classes"][-1]
    weight = read_fraction(1)
    if len(given) != 1 and text == "balanced":
        own = sizes[model["classes"].index(positive)]
        weight = Fraction(own, max(1, sum(sizes) - own))
    elif len(given) != 1:
        weight = read_fraction(text)
    maximise = {"sensitivity": "specificity", "specificity": "sensitivity"}[given[0]] if len(given) == 1 else "accuracy"
    return {"positive": positive, "maximise": maximise, "weight": weight, **shares}


def gap(certificate: dict[str, Any]) -> list[Finding]:
    """The gap follows from bound and objective; "optimal" needs a closed gap, or a gap that was asked for."""
    bound = certificate.get("bound")
    objective = certificate.get("objective")
    if bound is None or objective is None:
        return [recounted("gap", False, "There is a gap and no bound.")] if certificate.get("gap") is not None else []
    size = max(abs(read_fraction(objective)), Fraction(1, 10**10))
    own = abs(read_fraction(bound) - read_fraction(objective)) / size
    claimed = certificate.get("gap")
    words = f"recomputed {float(own):.6g}, claimed {certificate.get('gap')}"
    rounding = TOLERANCE * max(own, Fraction(1)) + Fraction(1, 10**15) / size
    holds = claimed is not None and abs(read_fraction(claimed) - own) <= rounding
    open_ = own > max(CLOSED, read_fraction(certificate.get("mip_gap") or 0)) + rounding
    if holds and open_ and certificate.get("status") == "optimal":
        return [recounted("gap", False, f"'optimal' is said of a gap of {float(own):.6g}.")]
    return [recounted("gap", holds, words)]


def optimal(model: dict[str, Any], bound: list[Finding], value: Fraction) -> list[Finding]:
    """The line on "optimal", which is as good as that on the bound if the tree, of this value, meets it: the file rounds both, this line does not."""
    certificate = model["certificate"]
    if certificate.get("status") != "optimal":
        return []
    own = next((f for f in bound if f.claim == "bound"), None)
    if own is None or own.verdict != "proved":
        return [proof_finding("optimal", "cannot be judged" if own is None else own.verdict, "It rests on the bound.")]
    if certificate.get("mip_gap"):
        return [proof_finding("optimal", "proved", "It rests on the bound, which the tree meets up to the gap.")]
    if own.top is not None and own.top > value:
        words = f"The bound leaves open objectives up to {own.top}, and that of the tree is {value}, which is less."
        return [proof_finding("optimal", "cannot be judged", words)]
    return [proof_finding("optimal", "proved", "It rests on the bound, which the tree meets.")]


def check_bound(
    model: dict[str, Any],
    rows: ModelTable,
    proved: Set[str] = frozenset(),
    charges: Mapping[int, Fraction] | None = None,
) -> list[Finding]:
    """The bound compared with what is known of every tree, with trees that are found here, and with a plain search.

    `charges`: what a unit of weight pays for a column.
    There is no search for what is among the claims `proved` by a proof: it would find nothing better.
    """
    certificate = model["certificate"]
    if certificate.get("bound") is None:
        return []
    claimed = read_fraction(certificate["bound"])
    method = model["method"]
    sizes = np.bincount(rows.labels, rows.weights, minlength=len(model["classes"]))
    single = Fraction(int(sizes.max()), int(sizes.sum())) - penalty(model)
    if claimed < read_fraction(certificate["objective"]) - TOLERANCE:
        return [_bound_finding("refuted", "It lies below the objective of the tree itself.")]
    whole = not any(active_parameter(model, name) for name in ("recall", "fairness", "balanced"))
    whole = whole and not certificate.get("wishes") and not certificate.get("goal")  # a single leaf is a tree
    if whole and method in small.SAME_OBJECTIVE | OBLIQUE and claimed < single - TOLERANCE:
        return [_bound_finding("refuted", "It lies below the objective of a single leaf.")]
    if method in OBLIQUE:
        counted_again = errors_in_planes(model, rows)
        if disputed(model, counted_again):
            return [
                _bound_finding(
                    "refuted", "The errors that it names for rows in a plane differ from those counted there."
                )
            ]
        if (proof := ceiling(model, rows, penalty(model), counted_again)) <= claimed + TOLERANCE:
            words = "Equal rows share a leaf, t leaves predict t classes"
            words += ", errors on disjoint sets of rows add up" if groups(model) else ""
            return [_bound_finding("proved", f"{words}: no tree exceeds {float(proof):.12g}.", proof)]
    if "bound" in proved:
        return []
    found, why = small.best_priced(model, rows, charges) if charges else small.best(model, rows)
    if found is None:
        return [_bound_finding("cannot be judged", f"Not contradicted; not solved again: {why}.")]
    words = f"A plain search {'' if found.whole else 'of a part of the space '}finds {float(found.value):.12g}"
    if claimed < found.value - TOLERANCE:
        return [_bound_finding("refuted", f"{words}, which is better.")]
    if not found.whole:
        return [_bound_finding("cannot be judged", f"Not contradicted: {words.lower()}; {why}.")]
    return [_bound_finding("proved", f"A plain search finds no tree above {float(found.value):.12g}.", found.value)]


def wishes(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """What the file says of the best tree without some of its wishes: searched again if that is small."""
    certificate = model["certificate"]
    own = certificate.get("wishes") or []
    top = certificate.get("optimum")
    every = range(len(own))
    found: list[tuple[str, bool | None]] = []
    if top is not None:
        best = _optimum_without(model, rows, every)
        low = read_fraction(top["objective"])
        high = read_fraction(top["bound"])
        sound = low <= high + TOLERANCE and top["proved"] is (top["objective"] == top["bound"])
        meets = best is None or low - TOLERANCE <= best <= high + TOLERANCE
        found.append(("optimum without wishes", (None if best is None else True) if sound and meets else False))
    for i, wish in enumerate(own):
        if wish.get("price") is not None:
            best = _optimum_without(model, rows, [i])
            fits = (
                best is not None
                and abs(best - read_fraction(certificate["objective"]) - read_fraction(wish["price"])) <= TOLERANCE
            )
            found.append((f"price of the wish '{wish['wish']}'", None if best is None else fits))
    words = {True: "Searched again.", False: "A search finds another value.", None: "Not searched again: too large."}
    verdicts: dict[bool | None, Verdict] = {True: "proved", False: "refuted", None: "cannot be judged"}
    return [proof_finding(c, verdicts[holds], words[holds]) for c, holds in found]


def _optimum_without(model: dict[str, Any], rows: ModelTable, dropped: Sequence[int]) -> Fraction | None:
    """The best objective without some wishes, found by a plain search; None where that is too large."""
    wishes = model["certificate"].get("wishes") or []
    if wishes:
        return small.optimum_without(model, rows, dropped) if len(wishes) <= MOST_WISHES else None
    found, _ = small.best(model, rows)
    return found.value if found is not None and found.whole else None


def _bound_finding(verdict: Verdict, detail: str, top: Fraction | None = None) -> Finding:
    return proof_finding("bound", verdict, detail, top)


def evidence(model: dict[str, Any], rows: ModelTable, errors: Sequence[int] = ()) -> list[Finding]:
    """One line for each part of the evidence that makes a claim; `errors` of trees with few leaves are what a proof shows."""
    out = []
    told = []
    for part in model["certificate"].get("evidence") or []:
        kind = str(part.get("kind"))
        if kind in ("dynamic-programming", "interval-pruning", "wishes"):
            out.append(_costs(model, part, kind, int(rows.weights.sum())))
        elif kind in ("leaf-frontier", "coefficient-frontier"):
            out.append(frontier(model, part, rows, errors))
        elif kind in ("frontier", "optimal-trees"):
            out += _pairs(model, part, rows) if kind == "frontier" else optimal_trees(model, part, rows)
        elif kind in TOLD.split():
            told.append(kind)
        else:
            out.append(_unknown(f"evidence '{kind[:40]}'"))
    if told:
        words = f"What the search tells of itself: {', '.join(told)}."
        out.append(unjudged("evidence", words, "aside"))
    return out


def _costs(model: dict[str, Any], part: dict[str, Any], kind: str, n: int) -> Finding:
    """Cost and bound in rows are the objective and the bound in other words."""
    objective, bound = (n * (1 - read_fraction(model["certificate"][name])) for name in ("objective", "bound"))
    holds = (
        max(abs(objective - read_fraction(part["cost"])), abs(bound - read_fraction(part["bound"]))) <= n * TOLERANCE
    )
    unit = "weights of copies" if model["certificate"].get("costs") else "rows"
    return recounted(kind, holds, f"cost {part['cost']} and bound {part['bound']}, in {unit}")


def _pairs(model: dict[str, Any], part: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Right rows of both classes: of each pair, of what lies between, and whether any is missing."""
    listed = [(int(tp), int(tn), int(top)) for tp, tn, top in part["pairs"]]
    open_ = len(part["proved"]) != len(listed) or any(
        said and tn != top for said, (_, tn, top) in zip(part["proved"], listed, strict=False)
    )
    ended = part["finished"] == (part.get("status", "optimal" if part["finished"] else "") == "optimal")
    if open_ or not ended or (part["finished"] and not all(part["proved"])):
        return [recounted("frontier", False, "Its pairs and what it says of them do not fit together.")]
    found = small.pairs(model, rows, part["positive"])
    if found is None:
        return [proof_finding("frontier", "cannot be judged", MANY)]
    positives, negatives, reached = found
    wrong = (part["positives"], part["negatives"]) != (positives, negatives)
    for said, (tp, tn, bound) in zip(part["proved"], listed, strict=True):
        wrong = wrong or not tn <= max((own for other, own in reached if other >= tp), default=-1) <= bound
        wrong = wrong or (said and any(other > tp and own >= tn for other, own in reached))
    before = -1
    for most, bound in part.get("bounds") or ():
        wrong = wrong or any(tn > bound for tp, tn in reached if before < tp <= most)
        before = most
    if part["finished"]:
        own = {(tp, tn) for tp, tn, _ in listed}
        wrong = wrong or not own <= set(reached) or (len(reached) <= THINNED and len(own) < len(reached))
    if wrong:
        return [recounted("frontier", False, "A search finds other pairs.")]
    words = f"All trees were searched again: {len(reached)} pairs are not beaten by others."
    return [proof_finding("frontier", "proved", words)]


def unknown(model: dict[str, Any]) -> list[Finding]:
    """One line for each part of the file that this checker does not know."""
    metrics = model.get("metrics") or {}
    places = [("", model, PARTS), ("", model["certificate"], f"{CERTIFICATE} {ASIDE}"), ("metrics ", metrics, SETS)]
    places += [(f"metrics {name} ", metrics.get(name) or {}, METRICS) for name in SETS.split()[2:]]
    places += [(f"metrics {name} ", metrics.get(name) or {}, f"{METRICS} {COST_METRICS}") for name in SETS.split()[:2]]
    places += [("rows ", model.get("rows") or {}, ROWS), *(("nodes ", node, NODE) for node in model["nodes"])]
    places += [*_in_certificate(model["certificate"]), *_in_table(model)]
    odd = (place + name for place, own, known in places for name in own if name not in known.split())
    return [_unknown(name) for name in dict.fromkeys(odd)]


def _in_certificate(certificate: dict[str, Any]) -> list[Place]:
    """The parts of a certificate that are lists or objects, and what may be in each; what a search tells of itself is told as a whole."""
    named = (("goal ", certificate.get("goal"), GOAL), ("optimum ", certificate.get("optimum"), OPTIMUM),
             ("costs ", certificate.get("costs"), COSTS), ("weights ", certificate.get("weights"), WEIGHTS),
             ("column_prices ", certificate.get("column_prices"), COLUMN_PRICES))  # fmt: skip
    found = [(place, own or {}, known) for place, own, known in named]
    found += [("wishes ", wish, WISH) for wish in certificate.get("wishes") or ()]
    for part in certificate.get("evidence") or ():
        kind = str(part.get("kind"))
        if kind in EVIDENCE:
            found.append((f"evidence '{kind}' ", part, f"kind {EVIDENCE[kind]}"))
            found += [(f"evidence '{kind}' points ", point, POINT) for point in part.get("points") or ()]
    return found


def _in_table(model: dict[str, Any]) -> list[Place]:
    """The schema, and how the table was read."""
    reading = model.get("reading") or {}
    found = [("columns ", column, COLUMN) for column in model["columns"]] + [("reading ", reading, READING)]
    return found + [("reading columns ", own, READ) for own in (reading.get("columns") or {}).values()]


def _unknown(name: str) -> Finding:
    return unjudged(name, "This checker does not know what it claims.")


def provenance(model: dict[str, Any]) -> list[Finding]:
    """What the file says about how it was made, which no check of rows can confirm."""
    told = [name for name in ASIDE.split() if model["certificate"].get(name) not in (None, "", {}, 0)]
    return [unjudged("how it was made", f"Taken on trust: {', '.join(told)}.", "aside")] if told else []
