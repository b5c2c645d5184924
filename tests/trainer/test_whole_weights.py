"""The stated error from rounding weights is true of sums of exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from trainer import make_classifier
from trainer.data.integer_weights import LARGEST_SUM, whole_weights
from trainer.families.exact.search.solve import solve_binary
from trainer.solver_common.binary_problem import BinaryProblem

MANY = 2_300  # distinct weights; above 2,000 the sum is computed in floats


def real_weights(seed, n):
    """Return distinct weights of very different sizes, none of them a short decimal."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(sigma=1 + seed % 3, size=n)


def shares(weights):
    """Return the share of each weight in the sum."""
    exact = [Fraction(w) for w in weights.tolist()]
    total = sum(exact, Fraction(0))
    return [w / total for w in exact]


def largest_change(given, whole):
    """Return the largest difference in the share of any set of rows, which is that of all rows that gained."""
    pairs = zip(shares(given), shares(whole), strict=True)
    return sum((max(a - b, Fraction(0)) for a, b in pairs), Fraction(0))


@pytest.mark.parametrize("n", [300, MANY])
@pytest.mark.parametrize("seed", range(3))
def test_weight_error_covers_the_worst_set_of_rows(seed, n):
    given = real_weights(seed, n)
    found = whole_weights(given)
    worst = largest_change(given, found.weights)
    assert 0 < worst <= Fraction(found.error)
    assert found.error <= float(worst) + 2e-12


def test_claim_holds_for_the_real_weights_up_to_its_error():
    """Rounding many weights changes the objective by more than float errors. The claim states the maximum."""
    rng = np.random.default_rng(5)
    given = real_weights(2, MANY)
    X = rng.integers(0, 2, (MANY, 3)).astype(float)
    y = ((X[:, 0] + rng.integers(0, 2, MANY)) > 1).astype(np.int64)
    model = make_classifier("exact", depth=2, leaf_penalty=0).fit(X, y, sample_weight=given)
    certificate = model.certificate_
    own = np.array(shares(given))
    objective = sum(own[model.predict(X) == y], Fraction(0))
    assert certificate.status == "optimal"
    assert abs(objective - Fraction(certificate.objective)) > Fraction(1, 10**12)
    assert abs(objective - Fraction(certificate.objective)) <= Fraction(certificate.weight_error) + Fraction(1, 10**15)
    # The best tree for the real weights, searched with much finer integer weights.
    fine = np.rint(given / given.sum() * 2**27).astype(np.int64)
    best = solve_binary(
        BinaryProblem(X.astype(np.uint8), y.astype(np.int32), n_classes=2, depth=2, leaf_cost=Fraction(0), weights=fine)
    )
    reached = float(1 - best.cost / int(fine.sum()))
    assert reached <= certificate.bound + certificate.weight_error + 1e-5


def test_integer_weights_stay_as_they_are():
    assert whole_weights(np.array([1.0, 2.0, 1e6])).weights.tolist() == [1, 2, 10**6]


def test_decimal_near_a_fraction_is_not_replaced_by_it():
    """The best fraction with a small denominator is 1/3, which is another weight."""
    near = whole_weights(np.array([0.33333333, 1.0]))
    assert near.error > 0
    assert near.weights.tolist() != [1, 3]
    assert whole_weights(np.array([1 / 3, 1.0])).error == 0


def test_weights_beyond_64_bits_keep_their_proportions():
    heavy, light = whole_weights(np.array([1e300, 5e299])).weights
    assert heavy == pytest.approx(2 * light, abs=2)


def test_negligible_rows_weigh_nothing():
    assert whole_weights(np.array([0.1, 0.2, 1e-12])).weights.tolist() == [1, 2, 0]


def test_equal_light_rows_are_rounded_alike():
    """Five of these ten rows would be negligible together, but all ten are not."""
    weights = whole_weights(np.array([np.pi] + [np.pi * 1e-7] * 10)).weights
    assert weights.min() > 0
    assert len(set(weights[1:].tolist())) == 1


def test_rounded_weights_use_the_whole_range():
    total = whole_weights(real_weights(0, 300)).weights.sum()
    assert 0.99 * LARGEST_SUM < total <= LARGEST_SUM
