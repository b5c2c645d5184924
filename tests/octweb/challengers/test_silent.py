"""A challenger predicts the rows of the served tree exactly as it would predict them itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from octweb.registry.prediction import silent
from octweb.registry.prediction.silent import NO_ANSWER, SilentTree, refusal_of
from trainer.data.parsing.values import plain_values
from trainer.data.rows import parse_rows
from trainer.errors import RowError
from trainer.table import MISSING_CATEGORY, Column, ColumnKind, ColumnSchema, Labels, MissingPolicy, Table
from trainer.training.run import TrainRequest, train
from trainer.tree.file import from_json

WORDS = ("blue", "green", "red", "grey")


@cache
def file_of(seed: int, *, classes=("no", "yes"), missing=MissingPolicy.LEARN, words=WORDS, names=("x", "y"), unit=""):
    """Return a small tree over two numeric columns and one of words. The target and the order depend on the seed."""
    rng = np.random.default_rng(seed)
    rows = 80
    numbers = rng.integers(0, 6, (rows, 2)).astype(float)
    with_empty = (*words, MISSING_CATEGORY) if missing is MissingPolicy.CATEGORY else words
    colour = rng.integers(0, len(with_empty), rows).astype(float)
    if missing is MissingPolicy.LEARN:
        numbers[rng.random((rows, 2)) < 0.1] = np.nan
    codes = ((np.nan_to_num(numbers[:, 0]) > 2) ^ (colour == 1) ^ (rng.random(rows) < 0.2)).astype(np.int32)
    policy = MissingPolicy.LEARN if missing is MissingPolicy.LEARN else MissingPolicy.DROP
    columns = [
        Column(schema=ColumnSchema(name=name, kind=ColumnKind.NUMERIC, missing=policy, unit=unit), cells=numbers[:, j])
        for j, name in enumerate(names)
    ]
    schema = ColumnSchema(name="colour", kind=ColumnKind.CATEGORICAL, categories=with_empty, missing=missing)
    columns.append(Column(schema=schema, cells=colour))
    order = rng.permutation(3)
    table = Table(columns=tuple(columns[j] for j in order), row_numbers=np.arange(1, rows + 1))
    request = TrainRequest(
        table=table,
        labels=Labels(name="kind", classes=classes, codes=codes),
        method="cart",
        parameters={"depth": 3},
    )
    return from_json(train(request).model.to_json())


def rows_to_ask(rng, count):
    words = [*WORDS, "mauve", None]
    return [
        {
            "x": rng.choice([0.0, 1.5, 3.0, 9.0]) if rng.random() > 0.2 else None,
            "y": float(rng.integers(0, 6)) if rng.random() > 0.2 else None,
            "colour": words[rng.integers(0, len(words))],
        }
        for _ in range(count)
    ]


def own_answer(file, row):
    """Return the class that the model predicts for a row sent to it, or None if it refuses the row."""
    tree = file.tree
    try:
        rows = plain_values(file.reading, [row])
        matrix = parse_rows(tree.schema, tree.used_columns, rows, refused=tree.refused_columns).matrix
    except RowError:
        return None
    return tree.classes[int(tree.predict(matrix)[0])]


@pytest.mark.parametrize("policies", list(itertools.product(MissingPolicy, repeat=2)), ids="-".join)
def test_silent_answers_equal_own_answers(policies):
    """All rows that the served tree answers are compared, except those whose cells it does not know."""
    rng = np.random.default_rng(1)
    compared = 0
    for seed in range(4):
        served = file_of(seed, missing=policies[0], words=WORDS[:3])
        words = WORDS if seed % 2 else WORDS[1::-1]
        challenger = file_of(seed + 50, missing=policies[1], words=words, classes=("yes", "no"))
        assert refusal_of(served, challenger) == ""
        tree = SilentTree(served, challenger)
        tested = {served.tree.schema[j].name for j in served.tree.used_columns}
        for row in rows_to_ask(rng, 60):
            if own_answer(served, row) is None:
                continue
            matrix = parse_rows(served.tree.schema, served.tree.used_columns, [row], refused=()).matrix
            answer = int(tree.answers(matrix[:, tree.columns])[0])
            expected = own_answer(challenger, row)
            if answer != NO_ANSWER:
                assert served.tree.classes[answer] == expected, row
                compared += 1
            elif expected is not None:
                is_unknown = row["colour"] is not None and row["colour"] not in WORDS[:3] and len(words) > 3
                untested = {name for name in ("x", "y", "colour") if row[name] is None} - tested
                assert is_unknown or untested, row
    assert compared > 60


@pytest.mark.parametrize("seed", range(3))
def test_words_are_read_as_by_the_challenger(seed):
    """Other spellings, spellings that it merges, and words that it takes for an empty cell."""
    served = file_of(seed, words=("Blue", "GREEN", "rot", "?"))
    column = {"taken_for": "plain", "spellings": {"rot": "red", "grün": "green"}, "missing": ["none"]}
    challenger = replace(file_of(seed + 50, words=("blue", "green", "red")), reading={"columns": {"colour": column}})
    tree = SilentTree(served, challenger)
    rows = [{"x": x, "y": 1.0, "colour": word} for x in (0.0, 3.0, 9.0) for word in ("Blue", "GREEN", "rot", "?")]
    matrix = parse_rows(served.tree.schema, served.tree.used_columns, rows).matrix
    answers = tree.answers(matrix[:, tree.columns]).tolist()
    assert [served.tree.classes[code] for code in answers] == [own_answer(challenger, row) for row in rows]
    unknown = parse_rows(served.tree.schema, served.tree.used_columns, [rows[0] | {"colour": "grün"}]).matrix
    assert tree.answers(unknown[:, tree.columns]).tolist() == [NO_ANSWER]


def test_model_with_other_contract_is_refused_with_difference():
    served = file_of(0)
    assert "classes" in refusal_of(served, file_of(1, classes=("no", "maybe")))
    assert refusal_of(served, file_of(2, names=("b", "b2"))).startswith("It tests 'b")
    assert refusal_of(file_of(0, unit="mm"), file_of(2, unit="inch")).endswith("in inch, and the served model in mm.")


def test_rows_beyond_the_queue_are_counted_as_skipped(monkeypatch):
    monkeypatch.setattr(silent, "MAX_WAITING_CELLS", 10)
    served = file_of(0)
    queue = silent.RowQueue("model", "v1", silent.SilentChallenger("7", SilentTree(served, file_of(1))))
    matrix = np.zeros((20, 3))
    queue.put(matrix, served.tree.apply(matrix))
    queue.put(matrix[:1], served.tree.apply(matrix[:1]))
    names = {key.name.split(" ")[2]: n for key, n in silent.silent_counts().items()}
    assert names.pop("skipped") == 20
    assert sum(names.values()) == 1
    assert silent.silent_counts() == {}
