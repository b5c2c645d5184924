"""octweb chooses the number of thresholds by data and depth, explains it, and lets the user replace it."""

from __future__ import annotations

import io

import pytest
from django.urls import reverse

from octweb.datasets import actions as datasets
from octweb.runs.models import TrainingRun
from octweb.runs.thresholds import chosen_bins
from trainer.data.encoding import Scheme
from trainer.methods.cost import ProblemSize
from trainer.registry import get
from trainer.solver_common.thresholds import LADDER, PROOF_SECONDS
from trainer.training.estimate import expected_seconds

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]  # the choice does not depend on the database
EXACT = get("exact")


@pytest.fixture
def wide(owner, media):
    """Provide a data set of twelve columns with 300 different numbers each."""
    lines = [",".join([*(f"c{j}" for j in range(12)), "class"])]
    lines += [",".join([*(str((i * (j + 7)) % 307) for j in range(12)), "ab"[i % 2]]) for i in range(300)]
    text = "\n".join(lines).encode()
    return datasets.create(owner=owner, file=io.BytesIO(text), source_name="wide.csv", target="class")


def bins(dataset, **values):
    return chosen_bins(dataset=dataset, method=EXACT, values=values)


def test_deep_trees_and_large_tables_get_fewer_thresholds(owner, wide):
    found = [bins(wide, depth=depth) for depth in range(1, 8)]
    counts = [chosen.bins for chosen in found]
    assert counts == sorted(counts, reverse=True)
    assert (counts[2], counts[-1]) == (LADDER[0], LADDER[-1])
    assert len(set(counts)) > 2
    assert found[2].why.startswith("We try 32 cut-off values per column")
    assert "finer ones did not help" in found[2].why
    assert "even so, the proof may take longer than" in found[-1].why
    middle = next(chosen for chosen in found if LADDER[-1] < chosen.bins < LADDER[0])
    assert "with more, the proof may take longer" in middle.why
    wide.rows = 100_000_000
    assert bins(wide, depth=3).bins < LADDER[0]


def test_unknown_methods_get_few_thresholds(owner, wide):
    for values in ({"recall": "a: 0.6"}, {"max_leaves": 4}, {"forbidden": "c1"}, {"max_columns": 2}):
        chosen = bins(wide, **values)
        assert (chosen.bins, "a limit makes the search longer" in chosen.why) == (LADDER[-1], True)
    assert bins(wide, recall="", max_leaves=None).bins == LADDER[0]


def test_columns_get_at_most_their_distinct_values(owner, media):
    text = "a,b,class\n" + "".join(f"{i % 2},{'xyz'[i % 3]},{'pq'[i % 2]}\n" for i in range(60))
    dataset = datasets.create(owner=owner, file=io.BytesIO(text.encode()), source_name="few.csv", target="class")
    chosen = bins(dataset)
    assert (chosen.scheme, chosen.why) == (Scheme.ALL_THRESHOLDS, "")


def test_run_uses_suggested_or_typed_thresholds(client, owner, wide):
    client.force_login(owner)
    page = client.get(reverse("runs:new"), {"dataset": wide.pk, "method": "exact"})
    text = page.content.decode()
    assert "at most 32 thresholds for a column of numbers" in text
    assert "We try 32 cut-off values per column" in text
    assert page.context["form"]["p_bins"].value() is None
    data = {
        "dataset": str(wide.pk), "method": "exact", "own": "1", "evaluation": "none", "p_depth": "3", "p_leaf_penalty": "0",
        "p_min_leaf": "1", "p_time_limit": "1", "p_class_weight": "none", "p_binarise": "quantile-thresholds",
        "p_optimal_trees": "0", "p_goal": "auto", "p_threads": "1", "p_seed": "0", "p_unseen_missing": "follow",
        "p_fairness": "none", "p_fairness_delta": "0.05",
    }  # fmt: skip
    for typed, wanted in (("", "auto"), ("auto", "auto"), ("5", 5), ("12", 12)):
        answer = client.post(reverse("runs:new"), data | {"p_bins": typed, "name": f"typed {typed}"})
        assert answer.status_code == 302, answer.context["form"].errors
        assert TrainingRun.objects.get(name=f"typed {typed}".strip()).parameters["bins"] == wanted
    deep = client.post(reverse("runs:advice"), data | {"p_bins": "", "p_depth": "7"}).content.decode()
    assert "at most four thresholds for a column of numbers" in deep
    assert "may take longer" in deep


def test_empty_field_takes_default_of_method_without_auto(client, owner, wide):
    """This also holds via a method without thresholds, whose form keeps the empty field hidden."""
    client.force_login(owner)
    data = {
        "dataset": str(wide.pk),
        "evaluation": "none",
        "p_bins": "",
        "p_depth": "3",
        "own": "1",
        "shown_method": "cart",
    }
    for method in ("odt", "bendoct"):
        form = client.post(reverse("runs:advice"), data | {"method": method}).context["form"]
        assert form["p_bins"].value() == str(get(method).parameter("bins").default)
        assert "p_bins" not in form.errors


def test_the_cost_model_is_near_what_was_measured():
    """The estimate, in processor seconds of one thread, may be off by its spread: a factor of about four."""
    measured = {  # rows, questions, classes, depth → seconds
        (14980, 448, 2, 3): 0.86, (10459, 598, 2, 3): 0.45, (19020, 320, 2, 3): 0.44, (569, 960, 2, 3): 0.26, (10459, 183, 2, 4): 1.8,
        (10459, 352, 2, 4): 12.3, (17898, 128, 2, 4): 1.9, (653, 219, 2, 4): 0.74, (336, 162, 8, 4): 0.73, (5620, 236, 10, 4): 1.6,
    }  # fmt: skip
    for (n, F, K, d), seconds in measured.items():
        estimated = expected_seconds(EXACT, ProblemSize(n=n, p=10, F=F, K=K, d=d))
        assert seconds / 4 < estimated < seconds * 4 + 0.3, (n, F, K, d, estimated)
    assert expected_seconds(EXACT, ProblemSize(n=14980, p=14, F=448, K=2, d=3)) < PROOF_SECONDS
