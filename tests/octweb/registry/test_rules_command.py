"""`manage.py rules` prints the words of the page, or a list for programs."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from tests.trainer.random_trees import random_tree
from trainer.tree.describe import rules_text
from trainer.tree.file import ModelFile, write
from trainer.tree.rules import rules_of


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("rules", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("seed", range(5))
def test_the_rules_of_a_file_are_printed_as_text_and_as_a_list(seed, tmp_path):
    tree, _ = random_tree(seed)
    path = tmp_path / "model.json"
    write(ModelFile(tree=tree), path)
    assert printed(str(path)) == rules_text(tree)
    document = json.loads(printed(str(path), "--json").splitlines()[-1])
    assert [(r["class"], r["rows"], r["correct"]) for r in document] == [
        (r.label, r.rows, r.correct) for r in rules_of(tree)
    ]
    assert sum(r["rows"] for r in document) == tree.nodes[0].rows


def test_a_file_that_is_not_a_model_is_refused_in_one_line(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("[]")
    with pytest.raises(CommandError, match="not an octweb model file"):
        printed(str(path))
    with pytest.raises(CommandError):
        printed(str(tmp_path / "absent.json"))
