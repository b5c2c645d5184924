"""How the planes of a finished tree are drawn: widest margin, soft margin, or few columns; no row that was right may become wrong."""

from __future__ import annotations

from collections.abc import Callable

import highspy
import numpy as np

from trainer.dtypes import CountArray, FloatArray
from trainer.families.oblique.instance import BRANCH, LEAF, ObliqueInstance, ObliqueTree
from trainer.families.oblique.separable import SeparatingPlane, Separator

STYLES = ("margin", "svm", "sparse")
LARGE = 100_000  # points times columns of a program that may take seconds
SOFT = 1000.0  # cost of a violated margin in the soft-margin problem, as a factor of |a|^2 / 2
LEAST_SPARSE = 1e-5  # margin of a sparse plane, largest coefficient 1
Draw = Callable[[FloatArray, CountArray, CountArray], "tuple[FloatArray, float] | None"]


def never() -> bool:
    """Planes are drawn to the end."""
    return False


def drawn_tree(instance: ObliqueInstance, at: CountArray, separator: Separator) -> ObliqueTree | None:
    """A tree in which point p ends at node `at[p]`, labelled by majority; None if no plane separates the rows of some node."""
    tree = instance.empty()
    leaves = np.unique(at).tolist()
    inner = sorted({u >> k for u in leaves for k in range(1, u.bit_length())})
    tree.kind[leaves] = LEAF
    tree.kind[inner] = BRANCH
    for v in inner:
        plane = separator.plane(*(np.flatnonzero(instance.visits(at, u)) for u in (2 * v, 2 * v + 1)))
        if plane is None:
            return None
        tree.a[v], tree.c[v] = plane.a, plane.c
        for u in (2 * v, 2 * v + 1):
            tree.kind[u] = tree.kind[u] or LEAF  # a side without points
    return instance.relabelled(tree)


def refitted(
    instance: ObliqueInstance,
    tree: ObliqueTree,
    separator: Separator,
    style: str,
    columns: CountArray,
    stopped: Callable[[], bool],
) -> tuple[ObliqueTree, bool]:
    """The tree with its planes drawn again, root first, and whether all are as asked for.

    `columns` int64 (m,) is the column that a feature comes from. A plane is drawn for the rows that are right below its node; it is
    kept only if the tree classifies at least as many rows.
    """
    value = instance.value(tree)
    as_asked = True
    for v in tree.branches:
        if stopped():
            return tree, False
        at = instance.route(tree)
        right = instance.counts[np.arange(len(at)), tree.label[at]] > 0
        sides = [np.flatnonzero(instance.visits(at, u) & right) for u in (2 * v, 2 * v + 1)]
        if not len(sides[0]) or not len(sides[1]):
            continue
        # a program that takes seconds is left when it is stopped; the others are asked in all ways
        large = (len(sides[0]) + len(sides[1])) * instance.Z.shape[1] > LARGE
        plane = separator.within(stopped, *sides) if large else separator.plane(*sides)
        if plane is None:
            as_asked = False
            continue
        for candidate in candidate_planes(instance.Z, sides[0], sides[1], plane, style, separator, columns, stopped):
            trial = tree.copy()
            trial.a[v], trial.c[v] = candidate.a, candidate.c
            if instance.value(trial) >= value:
                tree = trial
                value = instance.value(trial)
                as_asked = as_asked and (candidate is not plane or style == "margin")
                break
        else:
            as_asked = False
    return tree, as_asked


def candidate_planes(
    Z: FloatArray,
    L: CountArray,
    R: CountArray,
    widest: SeparatingPlane,
    style: str,
    separator: Separator,
    columns: CountArray,
    stopped: Callable[[], bool] = never,
) -> list[SeparatingPlane]:
    """Planes that part L from R, the preferred one first, the one of widest margin last."""
    found: list[SeparatingPlane | None] = []
    if style == "svm":
        a = soft_margin(Z, L, R, stopped)
        found = [None if a is None else separator.between(a, L, R)]
    elif style == "sparse":
        found = [fewest_columns(Z, L, R, widest, separator, columns, stopped)]
    return [plane for plane in found if plane is not None] + [widest]


def soft_margin(Z: FloatArray, L: CountArray, R: CountArray, stopped: Callable[[], bool] = never) -> FloatArray | None:
    """The normal of the soft-margin support vector machine, by its dual (Alston, Validi & Hicks, Algorithm 1, with 0 <= β <= C).

    Coordinate ascent on pairs keeps Σ δβ = 0. None if it does not settle or is stopped.
    """
    points = np.concatenate([L, R])
    delta = np.concatenate([-np.ones(len(L)), np.ones(len(R))])
    X = Z[points]
    beta = np.zeros(len(points))
    a = np.zeros(Z.shape[1])
    for rounds in range(200 * len(points)):
        if rounds % 64 == 0 and stopped():
            return None
        gradient = delta - X @ a  # of the objective in the direction δ_i, both signs
        up = np.where((delta > 0) & (beta < SOFT) | (delta < 0) & (beta > 0), gradient, -np.inf)
        down = np.where((delta > 0) & (beta > 0) | (delta < 0) & (beta < SOFT), gradient, np.inf)
        i = int(up.argmax())
        j = int(down.argmin())
        if up[i] - down[j] < 1e-6:
            return a
        difference = X[i] - X[j]
        step = (up[i] - down[j]) / max(float(difference @ difference), 1e-12)
        step = min(step, SOFT - beta[i] if delta[i] > 0 else beta[i], beta[j] if delta[j] > 0 else SOFT - beta[j])
        beta[i] += delta[i] * step
        beta[j] -= delta[j] * step
        a = a + step * difference
    return a


def fewest_columns(
    Z: FloatArray,
    L: CountArray,
    R: CountArray,
    widest: SeparatingPlane,
    separator: Separator,
    columns: CountArray,
    stopped: Callable[[], bool] = never,
    seconds: float = 5.0,
) -> SeparatingPlane | None:
    """The plane of widest margin over the fewest columns that separate the sides; of all if the small program ends in time.

    Binary z[column] allows |a_j| <= z; a program of HiGHS, so that the count is the least one for these sides. Columns that separate them
    by less than a hundred-thousandth do not count as parting them, unless the widest margin is near that.
    """
    used = np.unique(columns)
    place = {int(column): h for h, column in enumerate(used)}
    m = Z.shape[1]
    need = min(LEAST_SPARSE, 0.1 * widest.margin / max(float(np.abs(widest.a).max()), 1e-12))
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("time_limit", seconds), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(name, value)
    infinity = highspy.kHighsInf
    solver.addVars(m + 1, np.concatenate([-np.ones(m), [-infinity]]), np.concatenate([np.ones(m), [infinity]]))
    for h in range(len(used)):
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
    kept = np.flatnonzero(np.abs(a) >= 1e-9)
    wide = Separator(Z[:, kept]).plane(L, R)
    if wide is not None:
        a = np.zeros(m)
        a[kept] = wide.a
    return separator.between(a, L, R)
