"""Check the certificate: status, prices, gap, bound, wishes and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from typing import Any

import numpy as np

from trainer.check.proof.model import OBLIQUE, ModelTable, active_parameter, read_fraction
from trainer.check.recount.findings import TOLERANCE, Finding, Verdict, proof_finding, recount_finding, unjudged_finding
from trainer.check.recount.frontiers import frontier
from trainer.check.recount.optimal_trees import optimal_trees
from trainer.check.recount.search import small
from trainer.check.recount.search.planes import contradicts_errors, errors_in_planes, groups, objective_bound
from trainer.check.recount.structure import METHODS
from trainer.check.recount.trees.counts import counted_unit, penalty

GOALS = {
    "sensitivity": "the least sensitivity", "specificity": "the least specificity", "weight": "the weight of the other class",
}  # fmt: skip
MANY = "It is about many trees, which were not searched again."
THINNED = 2000  # with more pairs, training thins out the frontier that it writes
MOST_WISHES = 10  # with more wishes, their prices are not searched again
CLOSED = Fraction(1, 10**6)  # a smaller gap counts as closed
STATUSES = {"optimal", "time_limit", "memory_limit", "cancelled", "heuristic", "secret_counts"}
ASIDE = "solver solver_version seconds nodes cuts warm_start_objective unproved note weight_error unseen_looks single_question"
# members that this checker knows; it lists unknown ones without judging them. Files of earlier versions have digests in
# `training_rows`, which nothing reads
PARTS = """format format_version version name method target classes columns nodes parameters metrics certificate fingerprint rows
    reading training_rows contract sizes"""
CERTIFICATE = """method guarantee status objective bound gap mip_gap scope splits_proved splits subtrees_proved subtrees correct n leaves depth leaf_penalty evidence
    coefficient_penalty goal wishes optimum costs column_prices weights class_weights counts"""
SETS = "train test cross_validation"
METRICS = "n correct accuracy confusion folds finished ended accuracies deviation leaves groups interval by_fold rows"
ROWS = "used held_out folds weights fold_trees fold_questions costs group time weight"
COLUMN = "name kind categories missing unit special decimals change_unit fill fill_seen"
COST_METRICS = "cost cost_per_row constant_cost cost_confusion cost_interval saved_interval"
COSTS = "unit costs step rounding_error cost cost_per_row floor leaf_price best_constant least"
WEIGHTS = "column step rows correct_rows"
CLASS_WEIGHTS = "weights rows correct_rows error"
COLUMN_PRICES = "unit prices paid cost"
GOAL = "positive maximise weight sensitivity specificity"
WISH = "wish price reason"
OPTIMUM = "objective bound proved objective_cost"
READING = "delimiter encoding top bottom width columns given"
READ = "taken_for reason decimal thousands unit negative form origin clock zone either missing spellings ranks choices question given"
POINT = "leaves branchings coefficients correct bound proved tree"
EVIDENCE = {
    "dynamic-programming": "cost bound depth_two_subtrees cache_entries cache_evictions", "interval-pruning": "cost bound",
    "wishes": "cost bound", "leaf-frontier": "n most points unsettled", "coefficient-frontier": "n points",
    "frontier": "positive positives negatives pairs proved finished status bounds", "optimal-trees": "count listed", "subtrees": "height open starts",
}  # fmt: skip
NODE = "id counts split left right class impurity impurity_bound measure"
# evidence that only reports on the search; `check_bound` recounts planes itself
TOLD = "mip bound-met cases subset-search topology-choice greedy proof distance planes goal-search"

# a part of the file: its name, its members, and the names of its known members
Place = tuple[str, dict[str, Any], str]


def status(model: dict[str, Any]) -> Finding:
    """Check that the status fits the method, the bound and the gap."""
    certificate = model["certificate"]
    stated, bound, gap = (certificate.get(name) for name in ("status", "bound", "gap"))
    guarantee = METHODS[model["method"]][0]
    mip_gap = read_fraction(certificate.get("mip_gap") or 0)
    trouble = ""
    if stated not in STATUSES:
        trouble = f"There is no status '{str(stated)[:40]}'."
    elif mip_gap != read_fraction(model["parameters"].get("mip_gap") or 0):
        trouble = f"The parameters do not ask for a gap of {certificate['mip_gap']}."
    elif stated == "optimal" and guarantee != "tree":
        trouble = f"'{model['method']}' proves no tree optimal."
    elif stated == "optimal" and (bound is None or gap is None):
        trouble = "The status is 'optimal' without a bound and a gap."
    elif stated == "optimal" and certificate.get("unproved"):
        trouble = "The status is 'optimal' although a part of the claim is open."
    elif guarantee != "tree" and (bound is not None or gap is not None):
        trouble = f"'{model['method']}' has no bound for the whole tree."
    words = f"'{stated}'" + (f" (the search could stop at a gap of {certificate['mip_gap']})" if mip_gap else "")
    return recount_finding("status", not trouble, trouble or words)


def prices(model: dict[str, Any], sizes: Sequence[int], scale: Fraction) -> Finding:
    """Check that the objective of the file is that of the parameters: prices of leaves and coefficients, and required shares.

    `sizes` are the weights of the classes. The leaf penalty is multiplied by `scale`, see `leaf_scale`.
    """
    certificate = model["certificate"]
    parameters = model["parameters"]
    leaf = read_fraction(parameters.get("leaf_penalty") or 0) * scale
    if parameters.get("paper_lambda") is not None:
        weight = read_fraction(parameters["paper_lambda"])
        leaf = weight / (1 - weight) / sum(sizes)
    pairs = [(leaf, penalty(model), "the price of a leaf")]
    extra = certificate.get("coefficient_penalty")
    pairs.append(
        (
            read_fraction(parameters.get("coefficient_penalty") or 0),
            read_fraction(extra or 0),
            "the price of a coefficient",
        )
    )
    goal = certificate.get("goal") or {}
    required = _binary_goal(model, sizes) if model["method"] == "odt" else _count_goal(model, sizes)
    goal = goal and {"weight": 1} | goal
    for name, words in GOALS.items():
        shares = [-1 if of.get(name) is None else of[name] for of in (required, goal)]
        pairs.append((read_fraction(shares[0]), read_fraction(shares[1]), words))
    odd = next((words for required, stated, words in pairs if abs(required - stated) > TOLERANCE), "")
    # training never rewards leaves or coefficients, so a negative price is wrong
    odd = next((words for _, stated, words in pairs[:2] if stated < 0), odd)
    if any(required.get(name) != goal.get(name) for name in ("positive", "maximise")):
        odd = "the positive class, or the goal"
    odd = odd or _goal_contradiction(model)
    words = f"The parameters give another value for {odd}." if odd else "As the parameters ask."
    return recount_finding("what is maximised", not odd, words)


# restrictions that training refuses beside F1 and MCC, because they count rows or couple leaves
NOT_BESIDE_COUNTS = ("recall", "fairness", "monotone")


def _count_goal(model: dict[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """Return the goal F1 or MCC of the parameters; empty for others. The default class is the rarest, the last of equal ones."""
    name = active_parameter(model, "goal")
    if name not in ("f1", "mcc"):
        return {}
    rarest = max(k for k, size in enumerate(sizes) if size == min(sizes))
    positive = str(active_parameter(model, "positive") or "").strip() or model["classes"][rarest]
    return {"positive": positive, "maximise": name, "weight": 1}


def _goal_contradiction(model: dict[str, Any]) -> str:
    """Return a setting that training refuses together with the goal; empty if there is none."""
    name = active_parameter(model, "goal") or "auto"
    if name not in ("auto", "accuracy", "costs", "balanced", "f1", "mcc"):
        return f"the goal '{str(name)[:40]}', which does not exist"
    if model["method"] != "odt" and active_parameter(model, "positive") and name not in ("f1", "mcc"):
        return f"a positive class beside the goal '{name}'"
    balanced = active_parameter(model, "class_weight") == "balanced"
    if (name == "balanced") > balanced or (balanced and name not in ("auto", "balanced")):
        return f"class weights beside the goal '{name}'"
    if name in ("f1", "mcc"):
        if len(model["classes"]) != 2:
            return f"{len(model['classes'])} classes beside the goal '{name}'"
        if beside := next((one for one in NOT_BESIDE_COUNTS if active_parameter(model, one)), ""):
            return f"'{beside}' beside the goal '{name}'"
    costs = bool(str(active_parameter(model, "costs") or "").strip())
    return f"costs beside the goal '{name}'" if name != "auto" and costs != (name == "costs") else ""


def _binary_goal(model: dict[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """Return the goal of two classes that the parameters ask for; empty if it is accuracy."""
    shares = {name: active_parameter(model, name) for name in ("sensitivity", "specificity")}
    text = str(active_parameter(model, "negative_weight") or "1").strip()
    required = [n for n, v in shares.items() if v is not None]
    if not required and text == "1" and not active_parameter(model, "frontier"):
        return {}
    positive = str(active_parameter(model, "positive") or "").strip() or model["classes"][-1]
    weight = read_fraction(1)
    if len(required) != 1 and text == "balanced":
        positive_weight = sizes[model["classes"].index(positive)]
        weight = Fraction(positive_weight, max(1, sum(sizes) - positive_weight))
    elif len(required) != 1:
        weight = read_fraction(text)
    maximise = (
        {"sensitivity": "specificity", "specificity": "sensitivity"}[required[0]] if len(required) == 1 else "accuracy"
    )
    return {"positive": positive, "maximise": maximise, "weight": weight, **shares}


def gap(certificate: dict[str, Any]) -> list[Finding]:
    """Check the gap against bound and objective; "optimal" needs a closed gap, or one within `mip_gap`."""
    bound = certificate.get("bound")
    objective = certificate.get("objective")
    if bound is None or objective is None:
        return (
            [recount_finding("gap", False, "There is a gap and no bound.")]
            if certificate.get("gap") is not None
            else []
        )
    size = max(abs(read_fraction(objective)), Fraction(1, 10**10))
    relative_gap = abs(read_fraction(bound) - read_fraction(objective)) / size
    claimed = certificate.get("gap")
    words = f"recomputed {float(relative_gap):.6g}, claimed {certificate.get('gap')}"
    rounding = TOLERANCE * max(relative_gap, Fraction(1)) + Fraction(1, 10**15) / size
    holds = claimed is not None and abs(read_fraction(claimed) - relative_gap) <= rounding
    open_ = relative_gap > max(CLOSED, read_fraction(certificate.get("mip_gap") or 0)) + rounding
    if holds and open_ and certificate.get("status") == "optimal":
        return [recount_finding("gap", False, f"The status is 'optimal' with a gap of {float(relative_gap):.6g}.")]
    return [recount_finding("gap", holds, words)]


def optimal(model: dict[str, Any], bound: list[Finding], value: Fraction) -> list[Finding]:
    """Judge the status "optimal": without `mip_gap`, the proved bound must not exceed the objective `value`, compared exactly."""
    certificate = model["certificate"]
    if certificate.get("status") != "optimal":
        return []
    bound_finding = next((f for f in bound if f.claim == "bound"), None)
    if bound_finding is None or bound_finding.verdict != "proved":
        return [
            proof_finding(
                "optimal",
                "cannot be judged" if bound_finding is None else bound_finding.verdict,
                "It rests on the bound.",
            )
        ]
    if certificate.get("mip_gap"):
        return [proof_finding("optimal", "proved", "It rests on the bound, which the tree meets up to the gap.")]
    if bound_finding.top is not None and bound_finding.top > value:
        words = f"The bound leaves open objectives up to {bound_finding.top}, and that of the tree is {value}, which is less."
        return [proof_finding("optimal", "cannot be judged", words)]
    return [proof_finding("optimal", "proved", "It rests on the bound, which the tree meets.")]


def check_bound(
    model: dict[str, Any],
    rows: ModelTable,
    proved: Set[str] = frozenset(),
    charges: Mapping[int, Fraction] | None = None,
) -> list[Finding]:
    """Compare the bound with bounds on all trees, with single trees, and with a plain search.

    `charges` are the prices of columns per unit of weight. If a proof has `proved` the bound, there is no search.
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
    unrestricted = not any(active_parameter(model, name) for name in ("recall", "fairness", "balanced"))
    # without wishes and goal, a single leaf belongs to the space, so the bound cannot lie below its objective
    unrestricted = unrestricted and not certificate.get("wishes") and not certificate.get("goal")
    if unrestricted and method in small.SAME_OBJECTIVE | OBLIQUE and claimed < single - TOLERANCE:
        return [_bound_finding("refuted", "It lies below the objective of a single leaf.")]
    if method in OBLIQUE:
        counted_again = errors_in_planes(model, rows)
        if contradicts_errors(model, counted_again):
            return [
                _bound_finding(
                    "refuted", "The errors that it names for rows in a plane differ from those counted there."
                )
            ]
        if (proof := objective_bound(model, rows, penalty(model), counted_again)) <= claimed + TOLERANCE:
            words = "Equal rows share a leaf, t leaves predict t classes"
            words += ", errors on disjoint sets of rows add up" if groups(model) else ""
            return [_bound_finding("proved", f"{words}: no tree exceeds {float(proof):.12g}.", proof)]
    if "bound" in proved:
        return []
    searched, why = small.best_priced(model, rows, charges) if charges else small.best(model, rows)
    if searched is None:
        return [_bound_finding("cannot be judged", f"Not contradicted; not solved again: {why}.")]
    words = f"A plain search {'' if searched.is_whole else 'of a part of the space '}finds {float(searched.value):.12g}"
    if claimed < searched.value - TOLERANCE:
        return [_bound_finding("refuted", f"{words}, which is better.")]
    if not searched.is_whole:
        return [_bound_finding("cannot be judged", f"Not contradicted: {words.lower()}; {why}.")]
    return [
        _bound_finding("proved", f"A plain search finds no tree above {float(searched.value):.12g}.", searched.value)
    ]


def wishes(model: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Check the optimum without wishes and the prices of wishes, by a search where the space is small."""
    certificate = model["certificate"]
    records = certificate.get("wishes") or []
    top = certificate.get("optimum")
    every = range(len(records))
    outcomes: list[tuple[str, bool | None]] = []
    if top is not None:
        best = _optimum_without(model, rows, every)
        low = read_fraction(top["objective"])
        high = read_fraction(top["bound"])
        sound = low <= high + TOLERANCE and top["proved"] is (top["objective"] == top["bound"])
        meets = best is None or low - TOLERANCE <= best <= high + TOLERANCE
        unjudged = sound and meets and best is None
        outcomes.append(("optimum without wishes", None if unjudged else sound and meets))
    for i, wish in enumerate(records):
        if wish.get("price") is not None:
            best = _optimum_without(model, rows, [i])
            fits = (
                best is not None
                and abs(best - read_fraction(certificate["objective"]) - read_fraction(wish["price"])) <= TOLERANCE
            )
            outcomes.append((f"price of the wish '{wish['wish']}'", None if best is None else fits))
    words = {True: "Searched again.", False: "A search finds another value.", None: "Not searched again: too large."}
    verdicts: dict[bool | None, Verdict] = {True: "proved", False: "refuted", None: "cannot be judged"}
    return [proof_finding(c, verdicts[holds], words[holds]) for c, holds in outcomes]


def _optimum_without(model: dict[str, Any], rows: ModelTable, dropped: Sequence[int]) -> Fraction | None:
    """Find the best objective without some wishes; None if the space is too large."""
    wishes = model["certificate"].get("wishes") or []
    if wishes:
        return small.optimum_without(model, rows, dropped) if len(wishes) <= MOST_WISHES else None
    searched, _ = small.best(model, rows)
    return searched.value if searched is not None and searched.is_whole else None


def _bound_finding(verdict: Verdict, detail: str, top: Fraction | None = None) -> Finding:
    return proof_finding("bound", verdict, detail, top)


def evidence(model: dict[str, Any], rows: ModelTable, errors: Sequence[int] = ()) -> list[Finding]:
    """Check each part of the evidence that makes a claim; `errors` are lower bounds of a proof for trees with few leaves."""
    out = []
    search_kinds = []
    for part in model["certificate"].get("evidence") or []:
        kind = str(part.get("kind"))
        if kind in ("dynamic-programming", "interval-pruning", "wishes"):
            out.append(_check_costs(model, part, kind, rows.weights))
        elif kind in ("leaf-frontier", "coefficient-frontier"):
            out.append(frontier(model, part, rows, errors))
        elif kind in ("frontier", "optimal-trees"):
            out += _check_pairs(model, part, rows) if kind == "frontier" else optimal_trees(model, part, rows)
        elif kind == "subtrees":  # see `check_subtrees`
            continue
        elif kind in TOLD.split():
            search_kinds.append(kind)
        else:
            out.append(_unknown_finding(f"evidence '{kind[:40]}'"))
    if search_kinds:
        words = f"Reported by the search about itself: {', '.join(search_kinds)}."
        out.append(unjudged_finding("evidence", words, "aside"))
    return out


def _check_costs(model: dict[str, Any], part: dict[str, Any], kind: str, weights: np.ndarray) -> Finding:
    """Check that cost and bound in rows are the objective and the bound of the certificate."""
    n = int(weights.sum())
    objective, bound = (n * (1 - read_fraction(model["certificate"][name])) for name in ("objective", "bound"))
    holds = (
        max(abs(objective - read_fraction(part["cost"])), abs(bound - read_fraction(part["bound"]))) <= n * TOLERANCE
    )
    unit = "weights of copies" if model["certificate"].get("costs") else counted_unit(weights)
    least = "none costs less" if part["cost"] == part["bound"] else f"none costs less than {part['bound']}"
    return recount_finding(
        kind, holds, f"Counted in {unit}, leaves included, the tree costs {part['cost']}, and {least}."
    )


def _check_pairs(model: dict[str, Any], part: dict[str, Any], rows: ModelTable) -> list[Finding]:
    """Check the pairs of correct rows of both classes against the frontier of a search, which must have no others."""
    listed = [(int(tp), int(tn), int(top)) for tp, tn, top in part["pairs"]]
    open_ = len(part["proved"]) != len(listed) or any(
        is_proved and tn != top for is_proved, (_, tn, top) in zip(part["proved"], listed, strict=False)
    )
    ended = part["finished"] == (part.get("status", "optimal" if part["finished"] else "") == "optimal")
    if open_ or not ended or (part["finished"] and not all(part["proved"])):
        return [recount_finding("frontier", False, "Its pairs contradict the members about them.")]
    searched = small.pairs(model, rows, part["positive"])
    if searched is None:
        return [proof_finding("frontier", "cannot be judged", MANY)]
    positives, negatives, reached = searched
    wrong = (part["positives"], part["negatives"]) != (positives, negatives)
    for is_proved, (tp, tn, bound) in zip(part["proved"], listed, strict=True):
        wrong = (
            wrong or not tn <= max((other_tn for other_tp, other_tn in reached if other_tp >= tp), default=-1) <= bound
        )
        wrong = wrong or (is_proved and any(other_tp > tp and other_tn >= tn for other_tp, other_tn in reached))
    before = -1
    for most, bound in part.get("bounds") or ():
        wrong = wrong or any(tn > bound for tp, tn in reached if before < tp <= most)
        before = most
    if part["finished"]:
        pairs = {(tp, tn) for tp, tn, _ in listed}
        wrong = wrong or not pairs <= set(reached) or (len(reached) <= THINNED and len(pairs) < len(reached))
    if wrong:
        return [recount_finding("frontier", False, "A search finds other pairs.")]
    words = f"All trees were searched again: the frontier has {len(reached)} pairs."
    return [proof_finding("frontier", "proved", words)]


def unknown_members(model: dict[str, Any]) -> list[Finding]:
    """Return one finding for each member of the file that this checker does not know."""
    metrics = model.get("metrics") or {}
    places = [("", model, PARTS), ("", model["certificate"], f"{CERTIFICATE} {ASIDE}"), ("metrics ", metrics, SETS)]
    places += [(f"metrics {name} ", metrics.get(name) or {}, METRICS) for name in SETS.split()[2:]]
    places += [(f"metrics {name} ", metrics.get(name) or {}, f"{METRICS} {COST_METRICS}") for name in SETS.split()[:2]]
    places += [("rows ", model.get("rows") or {}, ROWS), *(("nodes ", node, NODE) for node in model["nodes"])]
    places += [*_in_certificate(model["certificate"]), *_in_table(model)]
    odd = (place + name for place, record, members in places for name in record if name not in members.split())
    return [_unknown_finding(name) for name in dict.fromkeys(odd)]


def _in_certificate(certificate: dict[str, Any]) -> list[Place]:
    """Return the lists and objects of a certificate with their known members; reports of the search are left out."""
    objects = (("goal ", certificate.get("goal"), GOAL), ("optimum ", certificate.get("optimum"), OPTIMUM),
             ("costs ", certificate.get("costs"), COSTS), ("weights ", certificate.get("weights"), WEIGHTS),
             ("class_weights ", certificate.get("class_weights"), CLASS_WEIGHTS),
             ("column_prices ", certificate.get("column_prices"), COLUMN_PRICES))  # fmt: skip
    places = [(place, record or {}, members) for place, record, members in objects]
    places += [("wishes ", wish, WISH) for wish in certificate.get("wishes") or ()]
    for part in certificate.get("evidence") or ():
        kind = str(part.get("kind"))
        if kind in EVIDENCE:
            places.append((f"evidence '{kind}' ", part, f"kind {EVIDENCE[kind]}"))
            places += [(f"evidence '{kind}' points ", point, POINT) for point in part.get("points") or ()]
    return places


def _in_table(model: dict[str, Any]) -> list[Place]:
    """Return the columns of the schema and the parts of the reading with their known members."""
    reading = model.get("reading") or {}
    places = [("columns ", column, COLUMN) for column in model["columns"]] + [("reading ", reading, READING)]
    return places + [("reading columns ", record, READ) for record in (reading.get("columns") or {}).values()]


def _unknown_finding(name: str) -> Finding:
    return unjudged_finding(name, "This checker does not know this member, so it was not checked.")


def single_question(model: dict[str, Any]) -> list[Finding]:
    """Check the rows that the best single question was judged on: those of the metrics, with no more correct ones.

    Its tree is not in the file, so the correct rows themselves are taken on trust.
    """
    stated = model["certificate"].get("single_question") or {}
    metrics = model.get("metrics") or {}
    judged = [(metrics.get(name) or {}).get("n") for name in ("test", "cross_validation")]
    correct, n = (stated.get(name) for name in ("correct", "n"))
    if not stated or (type(correct) is int and type(n) is int and 0 <= correct <= n and n in judged):
        return []
    words = (
        f"It says that {str(correct)[:40]} of {str(n)[:40]} unseen rows are right; the metrics judge another number."
    )
    return [recount_finding("single question", False, words)]


def provenance(model: dict[str, Any]) -> list[Finding]:
    """Return the finding on the origin of the file, which no check of rows can confirm."""
    stated = [name for name in ASIDE.split() if model["certificate"].get(name) not in (None, "", {}, 0)]
    return [unjudged_finding("how it was made", f"Taken on trust: {', '.join(stated)}.", "aside")] if stated else []
