"""Solve the margin problem of two small sets in exact fractions.

Used if floating point leaves it undecided. min Σ(p⁺ + p⁻) with Σ_L λz − Σ_R μz = p⁺ − p⁻, Σλ = Σμ = 1/2, by the primal simplex method with Bland's rule. One point of each side and
the parts of their difference are a feasible start basis.
"""

from __future__ import annotations

from fractions import Fraction

from trainer.dtypes import FloatArray

MAX_CELLS = 1_500  # limit on the entries of the matrix, because fractions grow with every pivot
MAX_PIVOTS = 400


def least_distance(left: FloatArray, right: FloatArray, enough: Fraction) -> Fraction | None:
    """Return half the l1 distance of the hulls of `left` (n, m) and `right` (k, m), or any upper bound on it up to `enough`.

    Returns None if the problem is too large for fractions, or takes too many pivots.
    """
    n = len(left)
    k = len(right)
    m = left.shape[1]
    if (m + 2) * (n + k + 2 * m) > MAX_CELLS:
        return None
    points = [[Fraction(float(x)) for x in row] for row in left] + [[-Fraction(float(x)) for x in row] for row in right]
    half = Fraction(1, 2)
    # columns are λ, μ, p⁺ and p⁻; the last entry of a row is its right-hand side
    rows = [
        [point[j] for point in points]
        + [Fraction(-(i == j)) for i in range(m)]
        + [Fraction(i == j) for i in range(m)]
        + [Fraction(0)]
        for j in range(m)
    ]
    for first, last in ((0, n), (n, n + k)):
        rows.append([Fraction(first <= i < last) for i in range(n + k + 2 * m)] + [half])
    cost = [Fraction(0)] * (n + k) + [Fraction(1)] * (2 * m) + [Fraction(0)]
    difference = [(points[0][j] + points[n][j]) / 2 for j in range(m)]
    basis = [(n + k + j) if difference[j] >= 0 else (n + k + m + j) for j in range(m)] + [0, n]
    for row, column in ((m, 0), (m + 1, n), *((j, basis[j]) for j in range(m))):
        _pivot(rows, cost, row, column)
    for _ in range(MAX_PIVOTS):
        if -cost[-1] <= enough:
            return -cost[-1]
        entering = next((j for j, reduced in enumerate(cost[:-1]) if reduced < 0), None)
        if entering is None:
            return -cost[-1]
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(rows) if row[entering] > 0]
        leaving = min(ratios)[2]  # never empty, because the objective is bounded from below
        _pivot(rows, cost, leaving, entering)
        basis[leaving] = entering
    return None


def _pivot(rows: list[list[Fraction]], cost: list[Fraction], at: int, column: int) -> None:
    """Make `column` basic in the row `at`."""
    factor = rows[at][column]
    rows[at] = [x / factor for x in rows[at]]
    for line in (*(row for i, row in enumerate(rows) if i != at), cost):
        if line[column]:
            share = line[column]
            line[:] = [x - share * y for x, y in zip(line, rows[at], strict=True)]
