"""Trees with wishes from counts are those of the workbench over the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import page_verdicts
from tests.trainer.counts.proof_cases import lines_of, page_files
from tests.trainer.counts.tables import KEY, TARGET, counted, random_rows, write_rows
from trainer.check.recount import verdict, verify
from trainer.cli.dispatch import main
from trainer.counts.folder import Counts, suppress_small
from trainer.counts.space import CountedQuestionNames, problem_of
from trainer.counts.train import counted_settings
from trainer.counts.workbench import complete_counts
from trainer.data.reader import load
from trainer.editing.complete import ConflictError
from trainer.errors import InfeasibleError, ParameterError
from trainer.training.run import TrainRequest
from trainer.tree.file import write
from trainer.workbench.requests import WorkbenchSession

PLACES = ("root", "y", "n", "yn", "yy", "nn", "ny")
COLUMNS = ("a", "b", "c", "colour")


def random_wishes(rng: np.random.Generator, counts: Counts, number: int) -> list[str]:
    """Return random wishes about counted questions; many contradict each other."""
    settings = counted_settings({}, asked=counts.questions.asked, depth=counts.depth)
    questions = CountedQuestionNames(counts, problem_of(counts, settings))
    most = 1 + 2 * counts.depth
    wishes = []
    for _ in range(number):
        place = str(rng.choice(PLACES[:most]))
        column = rng.choice(COLUMNS)
        question = questions.wish(int(rng.integers(len(questions.splits))))
        label = f" c{rng.integers(2)}" if rng.random() < 0.6 else ""
        wishes.append(
            str(
                rng.choice(
                    [
                        f"ask {place} {question}",
                        f"ask {place} {column}",
                        f"forbid {place} {column}",
                        f"avoid {place} {column}",
                        f"leaf {place}{label}",
                        f"depth {place} {rng.integers(0, 3)}",
                    ]
                )
            )
        )
    return wishes


def limits(rng: np.random.Generator, seed: int) -> dict[str, Any]:
    """Return random limits on the whole tree, or costs, in three of four cases."""
    kind = seed % 4
    if kind == 1:
        return {"max_leaves": int(rng.integers(1, 6)), "forbidden_pairs": str(rng.choice(["", "a + c", "b + colour"]))}
    if kind == 2:
        most = {"max_leaves": int(rng.integers(2, 7))} if rng.random() < 0.5 else {}
        return {
            "recall": f"c0: {rng.choice([0.4, 0.7, 0.9])}",
            "forbidden_pairs": str(rng.choice(["", "a + c"])),
        } | most
    if kind == 3:
        most = {"max_leaves": int(rng.integers(1, 6))} if rng.random() < 0.3 else {}
        return {"costs": f"c0>c1={rng.integers(1, 6)}; c1>c0={rng.integers(1, 4)}"} | most
    return {}


def facts(certificate: dict[str, Any]) -> list[Any]:
    """Return what a certificate states about the tree and its wishes, rounded; with costs in their unit."""
    optimum = certificate["optimum"]
    gained = optimum["objective"] - certificate["objective"]
    unit = optimum.get("objective_cost", 1)  # with a smallest leaf, rows have another scale of the objective
    wishes = [(wish["wish"], round(wish["price"] * unit, 8)) for wish in certificate["wishes"]]
    if certificate.get("costs"):
        numbers = [certificate["costs"][name] for name in ("cost", "least")]
    else:
        numbers = [round(certificate[name], 10) for name in ("objective", "bound")]
    return [*numbers, certificate["leaves"], certificate["status"], round(gained * unit, 8), wishes]


def outcome(complete: Any) -> Any:
    """Return the facts of a completion, or the minimal conflict."""
    try:
        return facts(complete())
    except ConflictError as error:
        return error.conflict
    except InfeasibleError as error:
        return str(error)


def compare(folder: Path, seed: int) -> bool:
    """Compare a completion from counts with that from rows, and check it; return whether there is a tree."""
    rng = np.random.default_rng([seed, 5])
    rows = random_rows(rng, classes=2 + seed % 2, empty=seed % 3 != 0)
    for row in rows[1:] if seed % 4 == 0 else ():  # a column of two categories has a mirrored question
        row[4] = str(rng.choice(["x", "z"]))
    path = write_rows(rows, folder / "rows.csv")
    counts = counted(path, folder / "counts", depth=1 + seed % 3)
    settings: dict[str, Any] = {"depth": 1 + seed % 3, "leaf_penalty": float(rng.choice([0, 0.01, 0.03]))}
    if seed % 5 == 1:
        settings["min_leaf"] = 3
    if seed % 6 == 1:
        settings["forbidden"] = "b"
    settings |= limits(rng, seed)
    wishes = random_wishes(rng, counts, 1 + seed % 3)
    table, labels, _ = load(path, target=TARGET, ignore=[KEY])
    session = WorkbenchSession(
        TrainRequest(table=table, labels=labels, method="exact", parameters=settings | {"bins": 4})
    )

    def of_rows():
        monitor = session.monitor()
        return session.result(session.complete(wishes, monitor), monitor).model.certificate

    def of_counts():
        return complete_counts(counts, wishes, settings).model.certificate

    found = outcome(of_counts)
    assert found == outcome(of_rows), (seed, settings, wishes)
    if not isinstance(found, list):
        return False
    write(complete_counts(counts, wishes, settings, proof=folder / "proof.jsonl.gz").model, folder / "model.json")
    beyond = "costs" in settings and "min_leaf" in settings  # the checker says that it has no steps for both
    for proof in (None,) if beyond else (None, folder / "proof.jsonl.gz"):
        findings = verify(folder / "model.json", folder / "counts", proof)
        expected = "recounted" if beyond else "proved"
        assert verdict(findings) == expected, (seed, [f for f in findings if f.verdict not in ("proved", "recounted")])
    return True


def test_wishes_from_counts_equal_those_of_rows(tmp_path):
    assert sum(compare(tmp_path / str(seed), seed) for seed in range(4)) > 1


@pytest.mark.slow
def test_many_wishes_from_counts_equal_those_of_rows(tmp_path, count):
    assert {compare(tmp_path / str(seed), seed) for seed in range(4, 4 + 12 * count)} == {True, False}


@pytest.fixture
def wished(tmp_path):
    """Provide a folder with counts, and a model whose wish costs something."""
    path = write_rows(random_rows(np.random.default_rng(4), empty=False), tmp_path / "rows.csv")
    counts = counted(path, tmp_path / "counts", depth=2)
    model = complete_counts(counts, ["ask root a", "leaf y c1"], {"depth": 2}, proof=tmp_path / "proof.jsonl.gz").model
    write(model, tmp_path / "model.json")
    return tmp_path


def _raise_price(document):
    document["certificate"]["wishes"][0]["price"] += 0.01


def _raise_optimum(document):
    document["certificate"]["optimum"]["objective"] += 0.01
    document["certificate"]["optimum"]["bound"] += 0.01


def _break_wish(document):
    document["certificate"]["wishes"][1]["wish"] = "leaf y c0"


def _drop_wish(document):
    document["certificate"]["wishes"] = document["certificate"]["wishes"][:1]


def _unprove_optimum(document):
    document["certificate"]["optimum"]["proved"] = False


@pytest.mark.parametrize("lie", [_raise_price, _raise_optimum, _break_wish, _drop_wish, _unprove_optimum])
def test_lies_about_wishes_are_refuted(wished, lie):
    assert verdict(verify(wished / "model.json", wished / "counts")) == "proved"
    document = json.loads((wished / "model.json").read_text(encoding="utf-8"))
    assert document["certificate"]["optimum"]["objective"] > document["certificate"]["objective"]
    lie(document)
    (wished / "model.json").write_text(json.dumps(document), encoding="utf-8")
    assert verdict(verify(wished / "model.json", wished / "counts")) == "refuted"


def test_the_page_does_not_judge_wishes_from_counts(wished):
    said = page_verdicts([page_files(wished, lines_of(wished))])[0]
    assert [holds for holds, _ in said] == [None]
    assert "check_octweb.py" in said[0][1]


def test_wishes_that_counts_do_not_know_are_refused(wished):
    counts = counted(wished / "rows.csv", wished / "more", depth=2)
    with pytest.raises(ParameterError, match="Counted about this column"):
        complete_counts(counts, ["ask root b <= 77"], {"depth": 2})
    with pytest.raises(ParameterError, match="together with costs"):
        complete_counts(counts, [], {"depth": 2, "recall": "c0: 0.9", "costs": "c0>c1=2"})
    with pytest.raises(ParameterError, match="secret"):
        complete_counts(suppress_small(counts, 3), ["ask root a"], {"depth": 2})


def test_complete_command_reads_a_folder_of_counts(wished, capsys):
    command = ["complete", str(wished / "counts"), "--depth", "2", "--wish", "ask root a"]
    assert main("octweb", [*command, "--reason", "ask root a", "law", "--json"]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert record["wishes"][0]["reason"] == "law"
    assert record["optimum"]["proved"]
    assert record["price_rows"] >= 0
    assert main("octweb", command) == 0
    assert "objective" in capsys.readouterr().out
    assert main("octweb", [*command, "--wish", "leaf root", "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["conflict"] == ["ask root a", "leaf root"]
    assert main("octweb", ["complete", str(wished / "rows.csv"), "--wish", "ask root a"]) != 0
    assert "name the column" in capsys.readouterr().err
