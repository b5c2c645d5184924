"""Each fact or rule is implemented in one place only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from octweb.core import badges
from octweb.experiments.api import NewExperimentSerializer
from octweb.experiments.forms import ExperimentForm
from octweb.runs.forms import MOST_PERCENT
from octweb.runs.serializers import NewRunSerializer
from octweb.workbench.api import NewWorkbenchSerializer
from tests.conftest import ROOT
from trainer.certificate import Evidence
from trainer.data.folds import MAX_HELD_OUT_SHARE, MOST_FOLDS
from trainer.training import claims
from trainer.tree.splits import KINDS

SPLITS = {kind.__name__ for kind in KINDS.values()}


def modules(*folders: str, but: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every module below the folders, except in those of `but`."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(but) or not but:
                yield name, path.read_text(encoding="utf-8")


def asked_kinds(source: str) -> list[str]:
    """Return the places where a module tests the kind of a split, by `isinstance` or by its name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            found += [f"line {node.lineno}: {name}" for name in sorted(names & SPLITS)]
        if isinstance(node, ast.Compare) and "kind" in ast.unparse(node.left):
            texts = {n.value for c in node.comparators for n in ast.walk(c) if isinstance(n, ast.Constant)}
            found += [f"line {node.lineno}: {text}" for text in sorted(texts & set(KINDS), key=str)]
    return found


@pytest.mark.slow
def test_only_split_modules_name_split_kinds():
    apart = (
        "trainer/tree/splits",
        "trainer/check/proof",
        "trainer/check/recount",
    )  # the checker shares no code with the program that it checks
    found = {name: places for name, text in modules("trainer", "octweb", but=apart) if (places := asked_kinds(text))}
    assert found == {}
    assert asked_kinds("if isinstance(split, Threshold | Linear): pass") == ["line 1: Linear", "line 1: Threshold"]
    assert asked_kinds('if record["kind"] == "subset": pass') == ["line 1: subset"]


def test_only_problem_computes_leaf_price_in_rows():
    """`Problem.kappa`, an exact fraction."""
    price = re.compile(r"\bleaf_penalty \* (?:\w+\.)*n\b(?!_)|\bn \* (?:\w+\.)*leaf_penalty\b")
    # the checker shares no code with the program that it checks
    apart = ("trainer/check/proof", "trainer/check/recount")
    found = [name for name, text in modules("trainer", "octweb", but=apart) if price.search(text)]
    assert found == [str(Path("trainer/data/problem.py"))]
    assert price.search("cost = problem.leaf_penalty * problem.n,")
    assert not price.search("leaf_penalty * tree.n_leaves")


def test_rows_and_settings_become_a_problem_in_one_place():
    found = [name for name, text in modules("trainer", "octweb") if re.search(r"(?<!class )\bProblem\(", text)]
    assert found == [str(Path("trainer/solver_common/problem_setup.py"))]


def test_side_constraint_is_named_by_its_families_and_checker():
    """`fairness` stands for one that only the models keep; a form may have a field of its own for it, at a place of its own."""
    apart = (
        "trainer/constraints",
        "trainer/families/mip/side",
        "trainer/families/exact/rules",
        "trainer/check/proof",
        "trainer/check/recount",
        "octweb/runs/forms.py",
        "octweb/runs/words.py",
    )
    found = [
        name for name, text in modules("trainer", "octweb", but=apart) if re.search(r'"(fairness|monotone)"', text)
    ]
    # this text says that the checker searches such a tree itself
    assert found == [str(Path("trainer/training/proof_file.py"))]


@pytest.mark.parametrize("kind", [e for e in Evidence if "-" in e])
def test_kinds_of_evidence_are_written_once(kind):
    """Names of one word have other meanings, too."""
    again = [
        n
        for n, text in modules(
            "trainer", "octweb", but=("trainer/check/proof", "trainer/check/recount", "trainer/certificate.py")
        )
        if f'"{kind}"' in text
    ]
    assert again == []


def test_evidence_names_its_kind_by_the_list():
    literal = re.compile(r'"kind": "')
    places = ("trainer/families", "trainer/growing", "trainer/editing")
    found = [name for name, text in modules(*places) if literal.search(text)]
    assert found == []


def test_every_kind_of_evidence_is_explained():
    page = (ROOT / "docs" / "model-file.md").read_text(encoding="utf-8")
    assert [kind for kind in Evidence if f"`{kind}`" not in page] == []
    judged = set(re.findall(r'"([a-z]+(?:-[a-z]+)*)"', _lines_with("trainer/check/recount/claims.py", "if kind in (")))
    assert judged <= set(Evidence)
    assert len(judged) == 7


def _lines_with(name: str, words: str) -> str:
    return "\n".join(line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if words in line)


@pytest.mark.parametrize(
    "words",
    [
        *(
            claims.PROVED,
            claims.LEAST_COST,
            claims.OBJECTIVE_PROVED,
            claims.NO_BOUND,
            claims.HEURISTIC,
            claims.NOTHING,
            claims.SPLITS_TIP,
        ),
        *(badges.HEURISTIC_TIP, "splits proved"),
    ],
)
def test_words_of_badges_are_written_once(words):
    texts = [*modules("octweb", "trainer", but=("octweb/core/badges.py", "trainer/training/claims.py"))]
    texts += [(str(p), p.read_text(encoding="utf-8")) for p in (ROOT / "templates").rglob("*.html")]
    assert [name for name, text in texts if f'"{words}"' in text or f">{words}<" in text or f" {words}{{" in text] == []


def test_rows_are_dealt_into_folds_by_one_function():
    dealt = re.compile(r"np\.arange\(len\(\w+\)\) % ")
    found = [
        name
        for name, text in modules("trainer", "octweb", but=("trainer/check/proof", "trainer/check/recount"))
        if dealt.search(text)
    ]
    assert found == [str(Path("trainer/data/folds.py"))]


def test_shares_and_folds_have_the_same_limits_everywhere():
    serializers = (NewRunSerializer(), NewExperimentSerializer(), NewWorkbenchSerializer())
    assert {s.fields["test_share"].max_value for s in serializers} == {MAX_HELD_OUT_SHARE}
    assert {s.fields["folds"].max_value for s in serializers[:2]} == {MOST_FOLDS}
    assert ExperimentForm.base_fields["folds"].max_value == MOST_FOLDS
    assert round(100 * MAX_HELD_OUT_SHARE) == MOST_PERCENT


def test_the_limits_of_a_training_are_read_in_one_place():
    readers = [name for name, text in modules("octweb") if "settings.MAX_TRAINING_THREADS" in text]
    assert readers == [str(Path("octweb/core/limits.py"))]


def public_classes(*folders: str) -> dict[str, list[str]]:
    """Return the modules that define each public class, without commands, migrations and Django models."""
    places: dict[str, list[str]] = {}
    for name, text in modules(*folders):
        if "/migrations/" in name or name.endswith("/models.py"):
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name != "Command":
                places.setdefault(node.name, []).append(name)
    return places


def test_each_public_class_name_is_defined_once():
    wire_names = {"RowsSerializer"}  # the API schema puts the name of the application before these names
    classes = public_classes("trainer", "octweb")
    assert {name: places for name, places in classes.items() if len(places) > 1 and name not in wire_names} == {}
