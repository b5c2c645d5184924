"""The page on the checker says how long it is now."""

from __future__ import annotations

import ast

import pytest

from docs import checker_size


def test_the_page_counts_the_lines_of_today():
    assert checker_size.PAGE.read_text(encoding="utf-8") == checker_size.made(), (
        "stale; run `python -m docs.checker_size`"
    )


def test_the_checker_of_proofs_keeps_to_the_length_that_the_page_names():
    assert 500 < checker_size.proofs_size() <= 1500


def test_what_checks_proofs_reads_no_part_of_a_model_file():
    """It names members of the lines of a proof, and none of a model document: the contract of the imports keeps the rest out."""
    texts = [
        path.read_text(encoding="utf-8") for path in sorted((checker_size.ROOT / "trainer/verify/steps").glob("*.py"))
    ]
    said = {str(n.value) for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
    assert {"path", "bound", "by"} <= said
    assert (
        said & {"certificate", "parameters", "evidence", "metrics", "nodes", "method", "target", "fingerprint"} == set()
    )
    assert all("verify.space" not in text and "verify.model" not in text for text in texts)


def test_only_code_is_counted():
    text = '"""A module.\n\nWords."""\n\nimport os  # why\n\n\ndef f():\n    """Words."""\n    # a comment\n    return (\n        os\n    )\n'
    assert checker_size.code_lines(text) == 5


def test_a_module_of_no_part_is_named():
    folder = checker_size.ROOT / "trainer" / "verify"
    assert checker_size.part_of(folder / "steps" / "new.py") == "verify/steps"
    assert checker_size.part_of(folder / "new.py") == "verify"
    with pytest.raises(LookupError, match="belongs to no part"):
        checker_size.part_of(folder / "new" / "new.py")
