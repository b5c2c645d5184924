"""A proof over subsets as binary features also holds for `odt`, and proves nothing false."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pytest

from tests.seeds import seeds
from tests.trainer.check.proof.changes import page
from tests.trainer.check.proof.second_checker_cases import proved_alone
from tests.trainer.odt.as_questions_cases import trained
from trainer.check.recount import verify
from trainer.data.reader import load
from trainer.families.odt.as_questions import MAX_QUESTIONS
from trainer.training.run import TrainRequest, train


def bound(found):
    return next(f for f in found if f.claim == "bound")


@pytest.mark.slow
@seeds(60)
def test_every_optimum_is_proved(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("odt")
    model, proof, data, result = trained(folder, seed)
    assert result.summary["proof"]["made"], result.summary["proof"]
    said = bound(verify(model, data, proof))
    assert (said.verdict, "no tree exceeds" in said.detail) == ("proved", True), said
    lines = gzip.decompress(proof.read_bytes()).decode().splitlines()
    header = json.loads(lines[0])
    # The same steps must not prove one unit more than is true.
    more = "\n".join([json.dumps(header | {"goal": header["goal"] + header["scale"]}), *lines[1:]])
    assert proved_alone(model, data, [more], folder) == [False]


@pytest.mark.parametrize("parameters", [{"topology": "[[[[[..].].].].]"}, {"negative_weight": "2"}])
def test_other_spaces_have_no_proof_and_say_so(tmp_path, parameters):
    _, proof, _, result = trained(tmp_path, 1, **parameters)
    assert not result.summary["proof"]["made"]
    assert result.summary["proof"]["reason"]
    assert not proof.exists()


NAMED = re.compile(r"(.* no other columns than )\((.*?)\)(.*)")


@pytest.mark.slow
@seeds(40)
def test_columns_that_cart_chose_are_a_space_of_their_own(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("odt")
    used = {"select": "cart", "topology": ("", "depth-2.5", "[.[..]]", "")[seed % 4], "depth": 2}
    used |= {"bins": 2 + seed % 4, "max_card": (0, 0, 1, 2)[seed % 4]}
    model, proof, data, _ = trained(folder, seed, **used)
    findings = verify(model, data, proof)
    assert bound(findings).verdict == "proved", findings
    assert all(f.verdict in ("proved", "recounted") for f in findings if f.role != "aside"), findings
    document = json.loads(model.read_text())
    lead, named, rest = NAMED.fullmatch(document["certificate"]["scope"]).groups()
    asked_columns = {v["split"]["feature"] for v in document["nodes"] if "split" in v}
    chosen = named.split(", ")
    every = ["a", "b", "c", "number"]
    for names in ([n for n in every if n in chosen and n != chosen[0]], every, ["a"], [*chosen, "d"], chosen[::-1]):
        if names in (chosen, []):
            continue
        scope = f"{lead}({', '.join(names)}){rest}".replace(f"of {len(chosen)} columns", f"of {len(names)} columns")
        document["certificate"]["scope"] = scope
        (lie := folder / "lie.json").write_text(json.dumps(document))
        said = verify(lie, data, proof)
        if not all(f.verdict == "proved" for f in said if f.claim == "bound") or any(
            f.verdict == "refuted" for f in said
        ):
            continue
        # Nothing was refuted, so the claim must be true of the new list of columns.
        assert asked_columns <= set(names) <= set(every)
        best = without(data, set(every) - set(names), **{k: v for k, v in used.items() if k != "select"})
        assert best == document["certificate"]["objective"]


@pytest.mark.slow
def test_both_checkers_read_proofs_over_chosen_columns(tmp_path):
    cases = []
    holds = []
    for seed in range(8):
        model, proof, data, _ = trained(tmp_path, seed, select="cart", topology=("", "depth-2.5")[seed % 2], depth=2)
        lines = gzip.decompress(proof.read_bytes()).decode().splitlines()
        header = json.loads(lines[0])
        document = json.loads(model.read_text())
        other = document | {"certificate": document["certificate"] | {"scope": "all trees"}}
        more = json.dumps(header | {"goal": header["goal"] + 1})
        for said, text in ((document, lines), (document, [more, *lines[1:]]), (other, lines)):
            model.write_text(json.dumps(said))
            proof.write_text("\n".join(text))
            cases.append((model.read_text(), proof.read_text(), data.read_text()))
            holds.append(not any(f.verdict == "refuted" for f in verify(model, data, proof)))
    assert holds == [True, False, False] * 8
    assert page(cases) == holds


def without(data, columns, **parameters):
    """Return the objective of the best tree without these columns."""
    kinds = {name: "categorical" for name in "abc" if name not in columns}
    table, labels, *_ = load(data, target="class", kinds=kinds, ignore=sorted(columns))
    request = TrainRequest(table=table, labels=labels, method="odt", parameters=parameters, test_share=0, folds=0)
    return train(request).model.certificate["objective"]


def test_too_many_subsets_are_left_alone(tmp_path):
    r = np.random.default_rng(0)
    rows = [f"u{i % 11},k{r.integers(2)}" for i in range(60)]
    data = tmp_path / "rows.csv"
    data.write_text("\n".join(["a,class", *rows]) + "\n")
    table, labels, *_ = load(data, target="class")
    proof = tmp_path / "proof.gz"
    result = train(TrainRequest(table=table, labels=labels, method="odt", parameters={"depth": 2}, proof=proof))
    assert MAX_QUESTIONS < 2**10
    assert not result.summary["proof"]["made"]
    assert "1,000" in result.summary["proof"]["reason"]


SHAPES = (
    "depth-2.5", "[.[..]]", "[[[..].][..]]", "imbalanced", "depth-3", "[[..][.[.[..]]]]", "[.[.[..]]]", "depth-2", "auto",
)  # fmt: skip


@pytest.mark.slow
@seeds(18)
def test_topologies_are_proved_and_nothing_better(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("odt")
    model, proof, data, result = trained(folder, seed, topology=SHAPES[seed % len(SHAPES)], bins=3)
    assert result.summary["proof"]["made"], result.summary["proof"]
    assert bound(verify(model, data, proof)).verdict == "proved"
    header, step = map(json.loads, gzip.decompress(proof.read_bytes()).decode().splitlines())
    assert header["version"] == 5
    more = [header | {"goal": header["goal"] + 1}, step | {"bound": step["bound"] + 1}]
    lies = [
        more,
        [more[0], step],
        [header],
        [header, step | {"path": [0]}],
        [header, step | {"by": "floor", "bound": step["bound"] + 1}],
    ]
    texts = ["\n".join(map(json.dumps, lie)) for lie in ([header, step], *lies)]
    holds = proved_alone(model, data, texts, folder)
    assert holds[:3] == [True, False, False]
    if seed < 9:
        assert page([(model.read_text(), text, data.read_text()) for text in texts]) == holds


@pytest.mark.parametrize("topology", ["depth-2.5", "auto"])
def test_the_claim_names_the_topology_that_was_searched(tmp_path, topology):
    """A larger topology, another choice or a tree outside the topology is refuted, whatever the proof proves."""
    model, proof, data, _ = trained(tmp_path, 3, topology=topology, bins=4)
    document = json.loads(model.read_text())
    claim = document["certificate"]
    evidence = document["certificate"]["evidence"]
    size = re.search(r"[0-9]+ questions, at most [0-9]+", claim["scope"])[0]
    chosen = [part | {"chosen": "imbalanced"} if part["kind"] == "topology-choice" else part for part in evidence]
    lies = [
        claim | {"scope": claim["scope"].replace(size, "9" + size[1:])},
        claim | {"scope": claim["scope"].replace(size, size + "0")},
    ]
    if topology == "auto":
        lies += [
            claim | {"evidence": chosen},
            claim | {"evidence": [part for part in evidence if part["kind"] != "topology-choice"]},
        ]
    for lie in lies:
        assert lie != claim
        model.write_text(json.dumps(document | {"certificate": lie}))
        assert next(f for f in verify(model, data, proof) if f.claim == "scope").verdict == "refuted"
    small = document | {"parameters": document["parameters"] | {"topology": "[..]"}}
    small["certificate"] = claim | {"scope": claim["scope"].replace(size, "1 questions, at most 1")}
    model.write_text(json.dumps(small))
    assert next(f for f in verify(model, data, proof) if f.claim == "scope").verdict == "refuted"
