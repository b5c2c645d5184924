"""Draw the planes of a finished tree again in a given style.

Styles are the widest margin, a soft margin, or few columns. The value of the tree never decreases.
"""

from __future__ import annotations

from collections.abc import Callable

import highspy
import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.families.oblique.instance import BRANCH, LEAF, ObliqueInstance, ObliqueTree
from trainer.families.oblique.separable import SeparatingPlane, Separator

STYLES = ("margin", "svm", "sparse")
LARGE_PROGRAM_CELLS = 100_000  # limit on points × columns; larger programs may take seconds
MARGIN_PENALTY = 1000.0  # penalty of a violated soft margin, relative to |a|² / 2
MIN_SPARSE_MARGIN = 1e-5  # least margin of a sparse plane whose largest coefficient is 1
Draw = Callable[[FloatArray, CountArray, CountArray], "tuple[FloatArray, float] | None"]


def never_stop() -> bool:
    """Return False: the default of `stopped`, which draws all planes."""
    return False


def separate_leaves(instance: ObliqueInstance, at: CountArray, separator: Separator) -> ObliqueTree | None:
    """Return the tree that sends point p to node `at[p]`, with majority labels; None if some node is inseparable."""
    tree = instance.empty()
    leaves = np.unique(at).tolist()
    inner = sorted({u >> k for u in leaves for k in range(1, u.bit_length())})
    tree.kind[leaves] = LEAF
    tree.kind[inner] = BRANCH
    for v in inner:
        plane = separator.plane(*(np.flatnonzero(instance.visits(at, u)) for u in (2 * v, 2 * v + 1)))
        if plane is None:
            return None
        tree.a[v] = plane.a
        tree.c[v] = plane.c
        for u in (2 * v, 2 * v + 1):
            tree.kind[u] = tree.kind[u] or LEAF  # an empty side becomes a leaf
    return instance.relabel(tree)


def refit_planes(
    instance: ObliqueInstance,
    tree: ObliqueTree,
    separator: Separator,
    style: str,
    columns: CountArray,
    stopped: Callable[[], bool],
) -> tuple[ObliqueTree, bool]:
    """Draw the planes of a tree again, root first; also return whether all have the requested style.

    `columns` int64 (m,) is the column of each feature. A plane separates the correct rows below its node, and is used only if the value
    of the tree does not decrease.
    """
    value = instance.value(tree)
    in_style = True
    for v in tree.branches:
        if stopped():
            return tree, False
        at = instance.route(tree)
        right = instance.counts[np.arange(len(at)), tree.label[at]] > 0
        sides = [np.flatnonzero(instance.visits(at, u) & right) for u in (2 * v, 2 * v + 1)]
        if not len(sides[0]) or not len(sides[1]):
            continue
        # large programs can be interrupted; small ones retry with all solver options
        large = (len(sides[0]) + len(sides[1])) * instance.Z.shape[1] > LARGE_PROGRAM_CELLS
        plane = separator.plane_within(stopped, *sides) if large else separator.plane(*sides)
        if plane is None:
            in_style = False
            continue
        for candidate in candidate_planes(instance.Z, sides[0], sides[1], plane, style, separator, columns, stopped):
            trial = tree.copy()
            trial.a[v] = candidate.a
            trial.c[v] = candidate.c
            if instance.value(trial) >= value:
                tree = trial
                value = instance.value(trial)
                in_style = in_style and (candidate is not plane or style == "margin")
                break
        else:
            in_style = False
    return tree, in_style


def candidate_planes(
    Z: FloatArray,
    L: CountArray,
    R: CountArray,
    widest: SeparatingPlane,
    style: str,
    separator: Separator,
    columns: CountArray,
    stopped: Callable[[], bool] = never_stop,
) -> list[SeparatingPlane]:
    """Return planes that separate L from R, the preferred one first, the one of widest margin last."""
    planes: list[SeparatingPlane | None] = []
    if style == "svm":
        a = solve_soft_margin(Z, L, R, stopped)
        planes = [None if a is None else separator.plane_between(a, L, R)]
    elif style == "sparse":
        planes = [find_fewest_columns(Z, L, R, widest, separator, columns, stopped)]
    return [plane for plane in planes if plane is not None] + [widest]


def solve_soft_margin(
    Z: FloatArray, L: CountArray, R: CountArray, stopped: Callable[[], bool] = never_stop
) -> FloatArray | None:
    """Return the normal of the soft-margin support vector machine (Alston, Validi & Hicks, Algorithm 1, with 0 <= β <= C).

    Coordinate ascent on pairs of the dual keeps Σ δβ = 0. Returns the last normal if it does not converge, None if it is stopped.
    """
    points = np.concatenate([L, R])
    delta = np.concatenate([-np.ones(len(L)), np.ones(len(R))])
    X = Z[points]
    beta = np.zeros(len(points))
    a = np.zeros(Z.shape[1])
    for rounds in range(200 * len(points)):
        if rounds % 64 == 0 and stopped():
            return None
        # change of the dual objective per unit step of β_i along δ_i; the opposite step changes it by the negative
        gradient = delta - X @ a
        up = np.where((delta > 0) & (beta < MARGIN_PENALTY) | (delta < 0) & (beta > 0), gradient, -np.inf)
        down = np.where((delta > 0) & (beta > 0) | (delta < 0) & (beta < MARGIN_PENALTY), gradient, np.inf)
        i = int(up.argmax())
        j = int(down.argmin())
        if up[i] - down[j] < 1e-6:
            return a
        difference = X[i] - X[j]
        step = (up[i] - down[j]) / max(float(difference @ difference), 1e-12)
        most_up = MARGIN_PENALTY - beta[i] if delta[i] > 0 else beta[i]
        most_down = beta[j] if delta[j] > 0 else MARGIN_PENALTY - beta[j]
        step = min(step, most_up, most_down)
        beta[i] += delta[i] * step
        beta[j] -= delta[j] * step
        a = a + step * difference
    return a


def find_fewest_columns(
    Z: FloatArray,
    L: CountArray,
    R: CountArray,
    widest: SeparatingPlane,
    separator: Separator,
    columns: CountArray,
    stopped: Callable[[], bool] = never_stop,
    seconds: float = 5.0,
) -> SeparatingPlane | None:
    """Return the plane of widest margin over the fewest columns that separate the sides; None if none is found.

    A mixed-integer program with binary z[column], |a_j| <= z, solved by HiGHS. The count is minimal unless the time is over. Planes need a
    margin of MIN_SPARSE_MARGIN, or a tenth of the widest margin if that is smaller.
    """
    distinct_columns = np.unique(columns)
    place = {int(column): h for h, column in enumerate(distinct_columns)}
    m = Z.shape[1]
    need = min(MIN_SPARSE_MARGIN, 0.1 * widest.margin / max(float(np.abs(widest.a).max()), 1e-12))
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("time_limit", seconds), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(name, value)
    infinity = highspy.kHighsInf
    solver.addVars(m + 1, np.concatenate([-np.ones(m), [-infinity]]), np.concatenate([np.ones(m), [infinity]]))
    for h in range(len(distinct_columns)):
        solver.addVar(0.0, 1.0)
        solver.changeColCost(m + 1 + h, 1.0)
        solver.changeColIntegrality(m + 1 + h, highspy.HighsVarType.kInteger)

    def interrupt(event: highspy.HighsCallbackEvent) -> None:
        if stopped():
            event.interrupt()

    for hook in (solver.cbMipInterrupt, solver.cbSimplexInterrupt):
        hook.subscribe(interrupt)
    every = np.arange(m + 1, dtype=np.int32)
    for i in L:
        solver.addRow(-infinity, -need, m + 1, every, np.append(Z[i], -1.0))
    for i in R:
        solver.addRow(need, infinity, m + 1, every, np.append(Z[i], -1.0))
    for j in range(m):
        for sign in (1.0, -1.0):
            pair = np.array([j, m + 1 + place[int(columns[j])]], np.int32)
            solver.addRow(-infinity, 0.0, 2, pair, np.array([sign, -1.0]))
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    solution = np.array(solver.getSolution().col_value)
    allowed = solution[m + 1 :] > 0.5
    a = np.where([allowed[place[int(column)]] for column in columns], solution[:m], 0.0)
    support = np.flatnonzero(np.abs(a) >= 1e-9)
    wide = Separator(Z[:, support]).plane(L, R)
    if wide is not None:
        a = np.zeros(m)
        a[support] = wide.a
    return separator.plane_between(a, L, R)
