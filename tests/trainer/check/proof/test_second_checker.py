"""The three checkers agree on the same files: modules, single file, and page."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.proof_within_cases import with_taller
from tests.trainer.check.proof.proofs_cases import mutations
from tests.trainer.check.proof.second_checker_cases import proved_alone, raised, table
from trainer.check.bundle import bundle
from trainer.check.proof.space.space import read_space
from trainer.check.recount import verdict, verify
from trainer.check.recount.search.small import _search
from trainer.check.recount.table.rows import load as read_rows
from trainer.data.reader import load
from trainer.errors import TrainerError
from trainer.training.run import TrainRequest, save, train
from trainer.workbench.requests import WorkbenchSession

SPACES: list[tuple[str, dict[str, Any]]] = [
    ("exact", {"depth": 2, "binarise": "quantile-thresholds", "bins": 4}),
    ("exact", {"depth": 3, "binarise": "quantile-buckets", "bins": 3, "leaf_penalty": 0.01}),
    ("exact", {"depth": 3, "binarise": "all-thresholds", "class_weight": "balanced"}),
    ("exact", {"depth": 4, "bins": 3, "forbidden": "colour"}),
    ("exact", {"depth": 4, "bins": 3, "min_leaf": 3}),
    ("exact", {"depth": 3, "bins": 3, "max_leaves": 4}),
    ("exact", {"depth": 4, "bins": 2, "max_leaves": 6, "leaf_penalty": 0.002}),
    ("exact", {"depth": 4, "bins": 3, "forbidden_pairs": "x+z; z+colour"}),
    ("bendoct-accelerated", {"depth": 2, "bins": 3}),
    ("exact", {"depth": 3, "bins": 4}),
    ("exact", {"depth": 2, "binarise": "all-thresholds"}),
    ("exact", {"depth": 3, "binarise": "quantile-buckets", "bins": 3}),
    ("exact-numeric", {"depth": 2}),
    ("exact-numeric", {"depth": 3, "leaf_penalty": 0.015}),
    ("exact-numeric", {"depth": 3, "class_weight": "balanced"}),
    ("odt", {"depth": 3, "bins": 4}),
    ("exact", {"depth": 3, "bins": 4, "recall": "yes: 0.9"}),
    ("exact", {"depth": 4, "bins": 3, "recall": "no: 0.95", "max_leaves": 7, "forbidden_pairs": "x+z"}),
    ("exact", {"depth": 4, "bins": 3, "max_columns": 1, "recall": "yes: 0.9"}),
    ("bendoct", {"depth": 2, "bins": 3, "monotone": "x up; z down"}),
    ("bendoct-accelerated", {"depth": 3, "bins": 3, "recall": "yes: 0.95", "max_columns": 2}),
    ("exact", {"depth": 3, "bins": 4}),
    ("exact", {"depth": 4, "bins": 2, "max_leaves": 6}),
    ("exact", {"depth": 4, "bins": 4, "binarise": "quantile-buckets", "min_leaf": 3, "leaf_penalty": 0.01}),
    ("exact", {"depth": 4, "bins": 3, "forbidden_pairs": "x+z", "max_columns": 2}),
    ("exact", {"depth": 3, "bins": 3, "recall": "yes: 0.8"}),
    ("exact-numeric", {"depth": 3}),
    ("odt", {"depth": 2, "bins": 4}),
    ("odt", {"depth": 3, "bins": 3}),
    ("flowoct", {"depth": 2, "bins": 3, "fairness": "parity", "fairness_column": "colour", "fairness_delta": 0.01}),
    (
        "bendoct",
        {
            "depth": 2,
            "bins": 2,
            "fairness": "opportunity",
            "fairness_column": "colour",
            "fairness_class": "no",
            "fairness_delta": 0,
        },
    ),
    ("exact", {"depth": 2, "bins": 3, "extra_thresholds": '{"z": [2.5, 6.5, 2.5], "x": [0.15]}'}),
    ("exact-numeric", {"depth": 2, "recall": "yes: 0.95"}),
    ("exact-numeric", {"depth": 3, "forbidden_pairs": "x+z; z+colour"}),
    ("exact-numeric", {"depth": 2, "max_columns": 1}),
    ("exact-numeric", {"depth": 3, "forbidden": "colour"}),
    ("exact-numeric", {"depth": 2, "min_leaf": 7}),
    ("exact-numeric", {"depth": 3, "max_leaves": 3}),
    ("exact", {"depth": 4, "bins": 3, "column_price": "x=0.02; colour=0.1", "leaf_penalty": 0.003}),
    ("exact", {"depth": 3, "bins": 3, "column_price": '{"z": 0.05, "flag": 0.01}', "max_leaves": 5, "min_leaf": 2}),
    ("exact-numeric", {"depth": 3, "column_price": "x=0.03; z=0.005"}),
]
ALONE = (0, 7, 13, 15, 17, 23)  # one case for each kind: splits, forbidden pairs, a recall, constraints
CHANGES = 6  # changed proofs that are tried: always the header and the missing end, others at random
WITHIN = 16  # first case that has steps within restrictions
WISHES = {  # case number → constraints of the workbench
    21: ["ask root x <= 0.3", "forbid y z", "leaf n", "avoid y x"],
    22: ["ask y x <= 0.77", "forbid n z"],
    23: ["ask yy colour", "leaf nn yes"],
    24: ["ask root colour in red|blue", "depth n 2"],
    25: ["ask n z between 2.5 and 6.5", "forbid y colour"],
    26: ["ask y x <= 0.123", "leaf n", "avoid root x"],
    27: ["together root colour in red|blue", "forbid y z", "leaf nn", "avoid root x"],
    28: ["ask root colour in red|green", "together y colour in red|green", "ask n x <= 0.123"],
}
# ordinary numbers lie between these special values
SPECIAL = {k: {"x": (0.1,), "z": (2.0, 8.0, 77.0)} for k in (9, 10, 11)}


@pytest.fixture(scope="module", params=range(len(SPACES)), ids=lambda k: "-".join(map(str, SPACES[k][1].values())))
def files(request, tmp_path_factory) -> tuple[Path, Path, Path]:
    """Provide a model, proof and table of a training."""
    folder = tmp_path_factory.mktemp("proof")
    method, parameters = SPACES[request.param]
    data = table(folder, request.param)
    rows, labels, _ = load(data, target="kind", ignore=[], special=SPECIAL.get(request.param, {}))
    share = 0.2 if request.param % 2 else 0.0
    model = folder / "model.json"
    proof = folder / "model.proof.jsonl.gz"
    asked = TrainRequest(
        table=rows,
        labels=labels,
        method=method,
        parameters=parameters,
        test_share=share,
        proof=proof,
    )
    if wishes := WISHES.get(request.param):
        session = WorkbenchSession(asked)
        monitor = session.monitor()
        result = session.result(session.complete(wishes, monitor), monitor, proof)
    else:
        result = train(asked)
    assert next(e for e in result.model.certificate["evidence"] if e["kind"] == "proof")["made"]
    save(result.model, model)
    return model, proof, data


def test_page_accepts_proof_with_rows_of_weight_zero(tmp_path):
    """Such rows neither train nor are held out: their sign in the model file is 2."""
    data = tmp_path / "rows.csv"
    lines = [f"{i % 2},{i % 3},{i % 5},{'ab'[(i % 6 < 2) ^ (i % 11 == 0)]},{i % 4}" for i in range(60)]
    data.write_text("\n".join(["x,y,z,kind,w", *lines]) + "\n")
    rows, labels, _ = load(data, target="kind", ignore=[], weight="w")
    proof = tmp_path / "proof.jsonl"
    parameters = {"depth": 2, "leaf_penalty": 0.01}
    result = train(TrainRequest(table=rows, labels=labels, method="exact", parameters=parameters, proof=proof))
    save(result.model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    document = json.loads(text)
    signs = document["rows"]["held_out"]
    assert set(signs) == {"0", "2"}
    document["rows"]["held_out"] = signs.replace("2", "0", 1)
    texts = (text, json.dumps(document))
    assert page([(own, lines_of(proof), data.read_text()) for own in texts]) == [True, False]


def lines_of(proof: Path) -> str:
    """Return the text of a proof file, which may be packed."""
    raw = proof.read_bytes()
    return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()


@pytest.mark.slow
def test_a_model_with_its_proof_is_proved(files):
    model, proof, data = files
    findings = verify(model, data, proof)
    assert verdict(findings) == "proved", findings
    assert next(f for f in findings if f.claim == "bound").verdict == "proved"


@pytest.mark.slow
def test_both_checkers_agree_on_every_change_of_proof(files, tmp_path):
    model, proof, data = files
    lines = [json.loads(line) for line in gzip.decompress(proof.read_bytes()).decode().splitlines()]
    rng = np.random.default_rng(0)
    changed = [
        [raised(lines[0], lines[0]["scale"]), *lines[1:]],
        [raised(lines[0], 1), *lines[1:]],
        [{**lines[0], "rows": "0" * 64}, *lines[1:]],
        [{**lines[0], "scale": 3 - lines[0]["scale"] if "goals" in lines[0] else 1}, *lines[1:]],
        lines[:-1],
    ]
    for k in rng.permutation(np.arange(1, len(lines)))[:1].tolist():
        changed += [[*lines[:k], one, *lines[k + 1 :]] for one in mutations(lines[k])]
        changed.append([*lines[:k], *lines[k + 1 :]])
        changed.append([*lines[:k], {**lines[k], "classes": [0, 0]}, *lines[k + 1 :]])
        for name in ("vectors", "columns", "with"):
            for i in range(len(lines[k].get(name, []))):
                changed.append(
                    [*lines[:k], {**lines[k], name: lines[k][name][:i] + lines[k][name][i + 1 :]}, *lines[k + 1 :]]
                )
    if len(changed) > CHANGES:
        changed = changed[:5] + [changed[i] for i in sorted(rng.permutation(np.arange(5, len(changed)))[: CHANGES - 5])]
    texts = ["\n".join(json.dumps(line) for line in one) for one in (lines, with_taller(lines), *changed)]
    texts.append(texts[0] + "\n\n")  # a blank line is not a step
    whole, longer, *said = page([(model.read_text(), text, data.read_text()) for text in texts])
    assert proved_alone(model, data, texts, tmp_path) == [whole, longer, *said]
    assert whole
    assert longer
    assert said[:3] == [False] * 3
    assert not said[-1]
    assert not said[4] or len(lines) == 1


def test_neither_checker_accepts_invalid_numbers(tmp_path):
    """Such values are a missing bound, a word as bound, an invalid limit, and a price below 0."""
    data = table(tmp_path, 3)
    rows, labels, _ = load(data, target="kind", ignore=[])
    model = tmp_path / "model.json"
    proof = tmp_path / "proof.jsonl.gz"
    asked = {"depth": 2, "bins": 3, "leaf_penalty": 0.01}
    save(train(TrainRequest(table=rows, labels=labels, method="exact", parameters=asked, proof=proof)).model, model)
    changes = [
        {}, {"certificate": {"bound": None}}, {"certificate": {"bound": "high"}}, {"certificate": {"bound": [1]}},
        {"certificate": {"leaf_penalty": "-1/100"}, "parameters": {"leaf_penalty": -0.01}}, {"parameters": {"depth": None}},
        {"parameters": {"depth": 1.5}}, {"parameters": {"max_leaves": "a"}}, {"parameters": {"min_leaf": -1.5}},
        {"parameters": {"max_columns": 0.5}}, {"parameters": {"bins": -5}}, {"parameters": {"bins": 0}},
        {"parameters": {"bins": 10**20}}, {"parameters": {"depth": 101}}, {"parameters": {"depth": 10**9}}, {"parameters": {"class_weight": "non"}},
        {"parameters": {"recall": "Yes: 0.1"}}, {"parameters": {"monotone": "x sideways"}}, {"certificate": {"bound": True}},
    ]  # fmt: skip
    texts = []
    own = []
    for change in changes:
        document = json.loads(model.read_text())
        for part, values in change.items():
            document[part] |= values
        texts.append(json.dumps(document))
        (tmp_path / "changed.json").write_text(texts[-1])
        try:
            own.append(verdict(verify(tmp_path / "changed.json", data, proof)) == "proved")
        except TrainerError:
            own.append(False)
    steps = gzip.decompress(proof.read_bytes()).decode()
    said = page([(text, steps, data.read_text()) for text in texts])
    assert own == said == [True] + [False] * (len(changes) - 1)


@pytest.mark.slow
def test_both_find_the_same_best_tree_with_equal_rates(tmp_path):
    """One step proves the best cost and no more, for any group, class, difference and restriction."""
    data = table(tmp_path, 5)
    rng = np.random.default_rng(5)
    rows, labels, _ = load(data, target="kind", ignore=[])
    plain = train(TrainRequest(table=rows, labels=labels, method="exact", parameters={"depth": 2, "bins": 3}))
    document = json.loads(json.dumps(plain.model.to_json()))
    cases = []
    own = []
    costly = 0
    for k in range(48):
        asked = {
            "fairness": ("parity", "opportunity")[k % 2], "fairness_column": str(rng.choice(["colour", "flag", "z"])),
            "fairness_class": str(rng.choice(["", "yes", "no"])), "fairness_delta": float(rng.choice([0, 0.05, 0.1, 0.25])),
            "max_leaves": 3 if k % 5 == 0 else None, "recall": "yes: 0.8" if k % 7 == 0 else "", "monotone": "x up" if k % 11 == 0 else "",
            "class_weight": "balanced" if k % 9 == 0 else "none",
        }  # fmt: skip
        model = document | {"method": "flowoct", "parameters": document["parameters"] | asked}
        (tmp_path / "model.json").write_text(json.dumps(model))
        space = read_space(model, read_rows(data, model).training)
        best = _search(space)[0]
        n = int(space.weights.sum())
        free = _search(replace(space, rates=None))[0]
        if best is None:
            continue
        costly += best > free
        for goal in (int(best), int(best) + 1):
            lines = [
                {"format": "octweb-proof", "version": 8, "like": 6, "rows": space.digest, "scale": 1, "goal": goal},
                {"path": [], "height": 2, "bound": goal, "by": "within"},
            ]
            text = "\n".join(json.dumps(line) for line in lines)
            claim = model["certificate"] | {"bound": 1 - goal / n, "leaf_penalty": "0"}
            cases.append((json.dumps(model | {"certificate": claim}), text, data.read_text()))
            own.append(goal == best)
    assert page(cases) == own
    assert costly > 20


@pytest.mark.parametrize("files", range(WITHIN), indirect=True)
def test_a_proof_for_another_table_is_refuted_at_the_fingerprint(files, tmp_path):
    model, proof, _ = files
    other = tmp_path / "other"
    other.mkdir()
    rows, labels, _ = load(table(other, 99), target="kind", ignore=[])
    parameters = json.loads(model.read_text())
    result = train(TrainRequest(table=rows, labels=labels, method=parameters["method"], parameters={"depth": 2}))
    save(result.model, other / "model.json")
    findings = verify(other / "model.json", other / "table-99.csv", proof)
    assert verdict(findings) == "refuted"
    assert "another table" in next(f for f in findings if f.claim == "proof").detail


@pytest.mark.slow
@pytest.mark.parametrize("files", range(WITHIN), indirect=True)
def test_a_bound_better_than_the_proof_shows_is_not_proved(files, tmp_path):
    """The file claims more than its steps show: the verdict is not "proved"."""
    model, proof, data = files
    lines = [json.loads(line) for line in gzip.decompress(proof.read_bytes()).decode().splitlines()]
    path = tmp_path / "weak.jsonl"
    weak = [raised(lines[0], -lines[0]["scale"]), *lines[1:]]
    path.write_text("\n".join(json.dumps(line) for line in weak))
    shown = next(f for f in verify(model, data, path) if f.claim == "bound")
    assert shown.verdict == "cannot be judged" or lines[0].get("goal", 9) < lines[0]["scale"]


BLOCKED = """
import sys, runpy
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"django", "octweb", "numba", "scipy", "pandas", "sklearn", "pyarrow", "threadpoolctl"}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("files", ALONE, indirect=True)
def test_the_single_file_runs_with_numpy_alone(files, tmp_path, request):
    model, proof, data = files
    space = request.node.callspec.params["files"]
    program = tmp_path / "check_octweb.py"
    program.write_text(bundle(), encoding="utf-8")

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", BLOCKED, str(program), *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)

    done = run(model, proof, data)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Verdict: proved\n")
    if space:
        return  # the messages about a bad call do not depend on the file
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"format":"octweb-proof","version":1}\n')
    assert run(model, bad, data).returncode == 1
    assert run(model, proof, tmp_path / "none.csv").returncode == 2
    assert run(model).returncode == 2
