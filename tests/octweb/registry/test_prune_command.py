"""`manage.py prune` writes a file with the same answers, or gives a reason and writes nothing."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from tests.trainer.random_trees import random_tree
from trainer.tree.file import ModelFile, read_model, write
from trainer.tree.idle import idle_questions, pruned


def test_smaller_model_is_written_and_its_size_printed(tmp_path):
    for seed in range(12):
        tree, matrix = random_tree(seed)
        model = ModelFile(tree=tree)
        path = tmp_path / "model.json"
        out = io.StringIO()
        write(model, path)
        if not idle_questions(tree):
            with pytest.raises(CommandError, match="each of them changes an answer"):
                call_command("prune", str(path), str(tmp_path / "none.json"))
            assert not (tmp_path / "none.json").exists()
            continue
        call_command("prune", str(path), str(tmp_path / "small.json"), stdout=out)
        made = read_model(tmp_path / "small.json")
        assert made.to_json() == pruned(model).to_json()
        assert made.tree.predict(matrix).tolist() == tree.predict(matrix).tolist()
        assert f"{tree.n_leaves} leaves before, {made.tree.n_leaves} now" in out.getvalue()


def test_a_file_that_is_not_a_model_is_refused_in_one_line(tmp_path):
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(CommandError, match="not an octweb model file"):
        call_command("prune", str(tmp_path / "other.json"), str(tmp_path / "none.json"))
