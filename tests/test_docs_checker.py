"""The checker page states the current size of the checker."""

from __future__ import annotations

import ast
import re

import pytest

from docs import checker_size


def test_page_states_statements_of_today():
    page = checker_size.PAGE.read_text(encoding="utf-8")
    assert page == checker_size.updated_page(), "stale; run `python -m docs.checker_size`"


def test_proof_steps_read_no_part_of_a_model_file():
    """They name members of proof lines, and none of a model document. The import contract keeps other parts out."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((checker_size.CHECK / "proof/steps").glob("*.py"))]
    constants = {str(n.value) for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
    members = {"certificate", "parameters", "evidence", "metrics", "nodes", "method", "target", "fingerprint"}
    assert {"path", "bound", "by"} <= constants
    assert constants & members == set()
    assert all("proof.space" not in text and "proof.model" not in text for text in texts)


def test_functions_name_the_rules_of_the_format():
    """Every rule of the page has a function whose docstring names it, and no docstring names another one."""
    page = (checker_size.ROOT / "docs" / "proof-format.md").read_text(encoding="utf-8")
    reasons = re.search(r"^\| `by` \| the reason: (.*)$", page, re.MULTILINE)
    tables = re.findall(r"^\| `by` \| members \| meaning \|\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    rules = set(re.findall(r"`([a-z]+)`", reasons[1]))
    rules |= set(re.findall(r"^\| `([a-z]+)` \|", "".join(tables), re.MULTILINE))
    paths = (checker_size.CHECK / "proof/steps").glob("*.py")
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.FunctionDef)]
    assert len(tables) == 2
    assert set(re.findall(r"rule `([a-z]+)`", " ".join(docstrings))) == rules


def test_only_statements_are_counted():
    text = '"""A module.\n\nWords."""\n\nimport os  # why\n\n\ndef f():\n    """Words."""\n    # a comment\n    return (\n        os\n    )\n'
    assert checker_size.count_statements(text) == 3


def test_module_outside_the_parts_is_named():
    assert checker_size.part_of(checker_size.CHECK / "proof/steps/new.py") == "proof/steps"
    assert checker_size.part_of(checker_size.CHECK / "proof/new.py") == "proof"
    with pytest.raises(LookupError, match="belongs to no part"):
        checker_size.part_of(checker_size.CHECK / "proof/new/new.py")
