"""Declare the method CUT-H: optimal hyperplane trees by cuts (Alston, Validi & Hicks)."""

from __future__ import annotations

from collections.abc import Callable

from trainer.certificate import Guarantee
from trainer.constraints.leaves import LEAVES
from trainer.data.problem import Problem, SettingNames
from trainer.errors import ParameterError
from trainer.families.oblique.frontier import solve_frontier
from trainer.families.oblique.instance import ObliqueInstance
from trainer.families.oblique.plan import HEAD, SCOPE, TAIL, SolvePlan, scope_words
from trainer.families.oblique.shattering import CONNECT, CutHooks, CutModel, CutOptions
from trainer.families.oblique.tree_search import solve_oblique
from trainer.methods.base import Method, Parameter, Settings, Solution
from trainer.methods.capabilities import Asks, Candidate, Group, Penalty, ProofKind, Role
from trainer.methods.cost import HYPERPLANE_PROGRAM
from trainer.methods.monitor import Monitor


def solve_with(problem: Problem, settings: Settings, monitor: Monitor, *, weak: bool) -> Solution:
    """Solve with the rows of CUT-H, or with the weaker ones of CUT_w-H."""
    options = CutOptions(
        weak=weak,
        connect=settings["connect"],
        tight=settings["tight"],
        symmetry=settings["symmetry"],
        everywhere=settings["everywhere"],
        several=settings["several"],
        full=settings["full_routing"],
    )

    def make(instance: ObliqueInstance, halted: Callable[[], bool]) -> CutModel:
        return CutModel(instance=instance, options=options, halted=halted)

    plan = SolvePlan(make=make, hooks=CutHooks, complete=settings["balanced"])
    if settings["pareto"]:
        return solve_frontier(problem, settings, monitor, plan)
    return solve_oblique(problem, settings, monitor, plan)


def solve(problem: Problem, settings: Settings, monitor: Monitor) -> Solution:
    """Solve with the rows of CUT-H."""
    return solve_with(problem, settings, monitor, weak=False)


def _check_balanced(settings: Settings, names: SettingNames) -> None:
    if not settings["balanced"]:
        return
    same = "has no use with 'balanced', since balanced trees of one depth all have the same size. Leave one of the two out."
    errors = {name: same for name in ("pareto", "then_fewest", "max_leaves", "leaf_penalty") if settings[name]}
    if settings["paper_lambda"]:
        errors["paper_lambda"] = same
    if settings["min_leaf"] > 1:
        errors["min_leaf"] = (
            "must be 1 with 'balanced', since balanced trees may have leaves without rows. Leave one of the two out."
        )
    if errors:
        raise ParameterError(errors)


def _full_proof(settings: Settings, names: SettingNames) -> None:
    # `pareto` proves every size by itself
    if settings["then_fewest"] and settings["mip_gap"] and not settings["pareto"]:
        raise ParameterError({"then_fewest": "needs a full proof. Set mip_gap to 0, or leave then_fewest out."})


CUTS = (
    LEAVES,
    Parameter(
        name="then_fewest", counts_rows=True, type="boolean", default=False, label="Then fewest leaves",
        help="Among the trees with the best objective, find one with the fewest leaves; the proof covers that too.", advanced=True,
        check=_full_proof,
    ),
    Parameter(
        name="pareto", counts_rows=True, type="boolean", default=False, label="Accuracy against size",
        help="Also find the best tree for every smaller number of leaves and for fewer coefficients, within the same time limit.",
    ),
    Parameter(
        name="balanced", type="boolean", default=False, label="Balanced",
        help="Search over trees in which every path has as many questions as the depth allows. Questions that separate no rows "
        "are left out of the tree that is shown.", advanced=True,
        restricts=lambda s: ["every path with as many questions as the depth allows"] if s["balanced"] else [],
        check=_check_balanced,
    ),
    Parameter(
        name="connect", type="choice", default="all", choices=CONNECT, label="Path rows",
        help="Rows that tie a correct row to its path: all at once, lazily, or lazily with root cuts of type I, II or III.",
        advanced=True,
    ),
    Parameter(
        name="tight", type="boolean", default=True, label="Routes of correct rows only",
        help="Misclassified rows have no route in the model, so fewer points must be separated.",
        advanced=True,
    ),
    Parameter(
        name="full_routing", type="boolean", default=False, label="Routes of all rows",
        help="Route every row to a leaf, also misclassified rows. A minimum number of rows per leaf turns this on.", advanced=True,
    ),
    Parameter(
        name="symmetry", type="boolean", default=True, label="Break symmetry",
        help="Keep only one of the mirrored forms of each tree.", advanced=True,
    ),
    Parameter(
        name="everywhere", type="boolean", default=True, label="Share cuts",
        help="A set of points that no hyperplane can separate is forbidden at every node and mirrored, not only where it was found.",
        advanced=True,
    ),
    Parameter(
        name="several", type="integer", default=5, minimum=1, maximum=50, label="Cuts at a time",
        help="How many minimal sets to look for at a node whose rows cannot be separated.", advanced=True,
    ),
)  # fmt: skip
METHOD = Method(
    id="cut-h",
    space=lambda problem, settings: scope_words(SCOPE, problem),
    title="CUT-H",
    summary="The best tree whose questions weigh all columns at once, by mixed-integer programming with cuts.",
    paper="Alston, Validi & Hicks, CUT-H",
    guarantee=Guarantee.TREE,
    splits=("threshold", "subset", "linear"),
    warm_start=True,
    good_for="Proves trees for hundreds of rows; for larger data you get a tree and a bound.",
    size_hint="Proves trees for hundreds of rows if a perfect tree exists, otherwise for dozens. For larger data you get a tree and a bound.",
    claim="Optimal: no better tree of this depth has questions that are hyperplanes separating their rows by at least 1e-7 of the range.",
    parameters=(*HEAD, *CUTS, *TAIL),
    solve=solve,
    estimator="CutHClassifier",
    proof=ProofKind.HYPERPLANES,
    cost=HYPERPLANE_PROGRAM,
    precompile=({}, {"first_trees": "none"}),
    group=Group.RECOMMENDED,
    asks=Asks.MANY,
    roles=(Role.MANY_PROVED,),
    candidates=(Candidate(parameters={"depth": 1, "leaf_penalty": Penalty.LARGE}),),
)
