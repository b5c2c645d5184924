"""Each number in the sentences of a dossier equals that of the model file."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest

from octweb.dossier.document import to_html
from tests.octweb.small_models import small_table
from trainer.data.formats.read_file import read_table
from trainer.data.inspect_table import inspect_raw
from trainer.data.parsing import reading_of
from trainer.dossier import dossier
from trainer.table import MissingPolicy
from trainer.training.run import TrainRequest, save, train
from trainer.tree.render.paper import pictures


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    table, labels = small_table()
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    names = [c.name for c in table.schema]
    lines = [",".join([*names, labels.name])]
    for k in range(len(table)):
        values = [c.categories[int(v)] if c.categories else f"{v:g}" for c, v in cells(table, k)]
        lines.append(",".join([*values, labels.classes[labels.codes[k]]]))
    path.write_text("\n".join(lines) + "\n")
    return table, labels, path


def cells(table, k):
    return [(column.schema, column.values[k]) for column in table.columns]


def made(rows, tmp_path, **options):
    table, labels, path = rows
    given = {"method": "exact", "parameters": {"depth": 2}} | options
    result = train(TrainRequest(table=table, labels=labels, **given))
    save(result.model, tmp_path / "model.json")
    record = dossier(tmp_path / "model.json", path)
    page = to_html(record, result.tree)
    return result, record, " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_column_with_empty_cells_says_where_they_go(rows, tmp_path):
    table, labels, path = rows
    width, *others = table.columns
    values = width.values.copy()
    values[:9] = np.nan
    learned = replace(width, schema=replace(width.schema, missing=MissingPolicy.LEARN), cells=values)
    lines = path.read_text().splitlines()
    (tmp_path / "rows.csv").write_text(
        "\n".join("," + line.partition(",")[2] if 1 <= i <= 9 else line for i, line in enumerate(lines)) + "\n"
    )
    holes = (replace(table, columns=(learned, *others)), labels, tmp_path / "rows.csv")
    result, record, text = made(holes, tmp_path)
    column = next(c for c in record["data"]["columns"] if c["name"] == "width")
    assert column["empty_training_cells"] == column["empty_cells"] == 9
    asked = sum("width" in [result.tree.schema[j].name for j in v.split.used] for v in result.tree.branches)
    assert sum(n for side, n in column["empty_sides"].items() if side != "unseen") == asked > 0
    assert column["empty"].startswith("learned: 9 training cells were empty; questions that send empty cells on: ")
    assert column["empty"] in text
    assert "each question sends an empty cell to one side" in text


def test_trees_of_folds_are_compared_beside_a_test_share(rows, tmp_path):
    result, record, text = made(rows, tmp_path, test_share=0.25, folds=5)
    assert record["stability"]["trees"] == 5
    assert sum(one["rows"] for one in record["stability"]["agreement"]) == 120
    assert "keeps no trees of folds" not in text
    assert record["data"]["training_rows"] == result.model.metrics["train"]["n"]
    assert record["data"]["unseen_rows"] == result.model.metrics["test"]["n"]


def test_leaf_of_a_picture_states_its_number(rows, tmp_path):
    result, _, _ = made(rows, tmp_path)
    svg = "".join(p.svg for p in pictures(result.tree))
    for leaf in result.tree.leaves:
        assert re.search(rf">[\d.]+ % (of \d+ )?· leaf {leaf.id}<", svg)
    assert not re.search(r">\d+: ", svg)


def test_proved_bound_of_a_stopped_search_is_no_proved_tree(rows, tmp_path):
    _, record, _ = made(rows, tmp_path)
    record["claim"] |= {"kind": "gap", "words": "Gap 79.1 %", "proved_optimal": False}
    record["check"]["verdict"] = "proved"
    text = to_html(record, made(rows, tmp_path)[0].tree)
    assert "the tree is not proved optimal" in text


def test_missing_purpose_is_reported_once(rows, tmp_path):
    _, record, text = made(rows, tmp_path)
    assert text.count("not written") == 0
    assert "People wrote this section" not in text
    record["about"]["purpose"] = {"Meant for": "sorting", "Not meant for": "", "Limits": ""}
    page = to_html(record, made(rows, tmp_path)[0].tree)
    assert "People wrote this section" in page
    assert "Not meant for" not in page


def test_findings_about_the_table_are_in_the_data_sheet(rows, tmp_path):
    _, labels, path = rows
    _, record, text = made(rows, tmp_path)
    wanted = inspect_raw(read_table(path), reading_of(read_table(path)), target=labels.name)
    assert [f["kind"] for f in record["data"]["findings"]] == [f.kind for f in wanted]
    assert wanted, "a table without a finding tests nothing"
    for finding in wanted:
        assert finding.figure in text
        assert finding.sentence in text
