"""Facts about a method are in its declaration only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainer.certificate import Guarantee
from trainer.methods.capabilities import Role
from trainer.registry import METHODS, editable_ids, method_for

IDS = {method.id for method in METHODS}
ROOMS = ("trainer", "octweb", "tools")
OWN_TABLES = {
    "trainer/families/": "declares the methods",
    "trainer/check/": "the checker shares no table with what it checks",
    "migrations/": "a migration speaks of the rows of its time",
}
OTHER_WORDS = {
    ("trainer/data/parsing/dates.py", "oct"): "a month",
    ("octweb/registry/page/node.py", "exact"): "the key of an exact text",
    ("octweb/registry/document/reasons.py", "exact"): "the key of an exact reason",
    ("trainer/explain/reasons.py", "exact"): "the key of an exact reason",
    ("octweb/client/client.py", "exact"): "the client names its default, because it runs without the library",
}


def named(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in IDS:
            yield node.lineno, node.value


@pytest.mark.slow
def test_method_ids_stand_in_families_only():
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if any(part in place for part in OWN_TABLES):
                continue
            found += [f"{place}:{line}: {word}" for line, word in named(path) if (place, word) not in OTHER_WORDS]
    assert not found, "\n".join(found)


def test_templates_compare_no_method_ids():
    compared = re.compile(r"(?:==|!=| in )\s*[\"'](" + "|".join(map(re.escape, sorted(IDS))) + r")[\"']")
    found = [str(p) for p in (ROOT / "templates").rglob("*.html") if compared.search(p.read_text(encoding="utf-8"))]
    assert not found


def test_exceptions_are_still_needed():
    assert all(
        (ROOT / place).exists() and word in dict.fromkeys(w for _, w in named(ROOT / place))
        for place, word in OTHER_WORDS
    )


@pytest.mark.parametrize("role", Role)
def test_role_has_exactly_one_method(role):
    assert [method.id for method in METHODS if role in method.roles] == [method_for(role).id]


def test_ids_and_estimators_are_unique():
    assert len(IDS) == len({method.estimator for method in METHODS}) == len(METHODS)


def test_provable_method_without_proof_kind_is_refused():
    for method in METHODS:
        if method.guarantee is Guarantee.TREE:
            with pytest.raises(TypeError, match=rf"'{method.id}'.*ProofKind\.OWN"):
                replace(method, proof=None)


def test_editable_methods_say_who_writes_proofs():
    assert all(method.provable for method in METHODS if method.id in editable_ids())


def test_side_constraints_role_takes_every_constraint():
    from trainer.constraints import NAMES

    assert all(method_for(Role.ONE_PROVED).parameter(name) for name in NAMES)
