"""The page on the checker says how long it is now."""

from __future__ import annotations

import ast
import dataclasses

import pytest

from docs import checker_size
from trainer.tree.file import ModelFile


def test_the_page_counts_the_lines_of_today():
    assert checker_size.PAGE.read_text(encoding="utf-8") == checker_size.made(), (
        "stale; run `python -m docs.checker_size`"
    )


def test_the_checker_of_proofs_keeps_to_the_length_that_the_page_names():
    assert 500 < checker_size.steps_size() <= 1500


def test_what_checks_proofs_reads_no_part_of_a_model_file():
    """No name of a part, and no module that makes them into numbers: the contract of the imports keeps the rest out."""
    parts = {field.name for field in dataclasses.fields(ModelFile)} | {"certificate", "parameters", "evidence"}
    texts = [path.read_text(encoding="utf-8") for path in sorted((checker_size.FOLDER / "steps").glob("*.py"))]
    said = {n.value for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
    assert said & {"path", "bound", "by"} == {"path", "bound", "by"}  # the lines of a proof are read there
    assert said & (parts - {"rows"}) == set()
    assert all("verify.space." not in text.replace("verify.space.subject", "") for text in texts)


def test_only_code_is_counted():
    text = '"""A module.\n\nWords."""\n\nimport os  # why\n\n\ndef f():\n    """Words."""\n    # a comment\n    return (\n        os\n    )\n'
    assert checker_size.code_lines(text) == 5


def test_a_module_of_no_part_is_named():
    assert checker_size.part_of(checker_size.FOLDER / "steps" / "new.py") == checker_size.STEPS
    assert checker_size.part_of(checker_size.FOLDER / "new.py") == checker_size.TOP
    with pytest.raises(LookupError, match="belongs to no part"):
        checker_size.part_of(checker_size.FOLDER / "new" / "new.py")
