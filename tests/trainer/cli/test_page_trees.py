"""The trees of the methods' pages are what the methods train, and all their claims hold."""

from __future__ import annotations

import shutil

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import ROOT
from trainer.check.recount import verdict, verify
from trainer.cli import page_trees
from trainer.cli.page_trees import command_of, train, train_missing
from trainer.errors import DataError
from trainer.registry import METHODS, get
from trainer.training.method_pages import model_path
from trainer.tree.file import read_model

PAGES = ROOT / "docs" / "methods"
AT_ONCE = ("cart", "exact", "exact-numeric", "bivariate")  # their trees depend on no time limit and on no solver


def table_of(method, folder):
    sample, _ = command_of(method)
    path = folder / f"{sample.slug}.csv"
    path.write_text("\n".join(sample.lines()) + "\n")
    return path


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_the_claims_of_a_kept_tree_hold(method, tmp_path):
    findings = verify(model_path(PAGES, method), table_of(method, tmp_path))
    assert verdict(findings) in {"proved", "recounted"}, [f for f in findings if f.verdict == "refuted"]


@pytest.mark.parametrize("name", AT_ONCE)
def test_stored_tree_equals_todays_training(name, tmp_path):
    train(get(name), tmp_path / "model.json")
    model = read_model(model_path(PAGES, get(name)))
    today = read_model(tmp_path / "model.json")
    assert today.tree == model.tree, f"stale; run `manage.py methods --write docs/methods --again {name}`"
    assert today.certificate["status"] == model.certificate["status"]


def test_only_missing_trees_are_trained(tmp_path, monkeypatch):
    folder = tmp_path / "methods"
    shutil.copytree(PAGES, folder)
    model_path(folder, get("cart")).unlink()
    trained = []
    monkeypatch.setattr(page_trees, "train", lambda method, path: trained.append(method.id))
    list(train_missing(folder, again=["exact"]))
    assert sorted(trained) == ["cart", "exact"]
    with pytest.raises(DataError, match="no method 'carts'"):
        list(train_missing(folder, again=["carts"]))


def test_the_command_repairs_a_page_and_a_picture(tmp_path, capsys):
    folder = tmp_path / "methods"
    shutil.copytree(PAGES, folder)
    page = folder / "cart.md"
    picture = folder / "trees" / "cart.svg"
    wanted = page.read_text(), picture.read_text()
    page.write_text(wanted[0].replace("trees/cart.svg", "trees/other.svg"))
    picture.write_text("<svg/>")
    call_command("methods", "--write", str(folder))
    assert (page.read_text(), picture.read_text()) == wanted
    assert "cart.svg" in capsys.readouterr().out
    page.write_text("# cart\n")
    with pytest.raises(CommandError, match="lacks the line"):
        call_command("methods", "--write", str(folder))
