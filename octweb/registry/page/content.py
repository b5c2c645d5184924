"""Compute parts of the model page from document and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import DatasetRows, rows_of
from octweb.registry.models import TreeModel
from octweb.registry.page.typed_numbers import typed_number
from octweb.registry.prediction.predictions import leaf_answer
from trainer.certificate import Evidence, Status
from trainer.data.parsing import ColumnParsing
from trainer.errors import TrainerError
from trainer.evaluate.verdict import cost_rate
from trainer.table import ColumnKind, ColumnSchema
from trainer.tree.describe import headline, path_in_words, rules_text
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Node, Tree, tree_from_json
from trainer.tree.numbers import number_text, unit

WARN_POINTS = 0.03  # the page warns if training accuracy exceeds unseen accuracy by more than this
LISTED_CATEGORIES = 200


class NumberWriting(TypedDict):
    """Further arguments of `typed_number` for a column."""

    unit: str
    decimal_comma: bool


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The path of one row through the tree, with its leaf and its actual class."""

    title: str
    nodes: list[int]
    sentences: list[str]
    label: str
    probabilities: list[tuple[str, float]]
    leaf: int
    actual: str | None = None
    values: dict[str, Any] = field(default_factory=dict)


def facts(model: TreeModel) -> dict[str, Any]:
    """Return the facts at the top of the page: accuracy or costs on unseen and training rows, and effort of the training."""
    file = model_file(model)
    metrics = file.metrics
    certificate = file.certificate
    parameters = file.parameters
    crossed, test, train = (metrics.get(k) or {} for k in ("cross_validation", "test", "train"))
    if crossed.get("accuracy") is not None:
        how = f"mean of {crossed.get('folds')} folds, standard deviation {100 * (crossed.get('deviation') or 0.0):.1f} points"
    elif crossed.get("ended"):
        how = f"the cross-validation was given up in {crossed['ended']}"
    elif test:
        how = f"{test.get('correct'):,} of {test.get('n'):,} held-out rows correct"
    else:
        how = "no rows were held out; hold out a share, or cross-validate"
    deviation = crossed.get("deviation") if crossed.get("accuracy") is not None else None
    difference = None
    if model.unseen_accuracy is not None and model.train_accuracy - model.unseen_accuracy > WARN_POINTS:
        difference = 100 * (model.train_accuracy - model.unseen_accuracy)
    ended = {
        Status.TIME_LIMIT: "ended by its time limit",
        Status.MEMORY_LIMIT: "ended by its memory limit",
        Status.CANCELLED: "stopped by request",
        Status.INTERVALS: "left open by small numbers that are kept secret",
    }.get(Status(model.status), "no limit reached")
    threads = parameters.get("threads") or 1
    return {
        "how": how,
        "deviation": None if deviation is None else 100 * deviation,
        "correct": train.get("correct"),
        "n": train.get("n"),
        "difference": difference,
        "cost": None if cost_rate(file, unseen=False) is None else _cost_facts(file),
        "seconds": certificate.get("seconds"),
        "training": f"{threads} {'thread' if threads == 1 else 'threads'}, {ended}",
    }


def _cost_facts(file: ModelFile) -> list[dict[str, Any]]:
    """Return what the answers cost on unseen and on training rows, next to the best single answer."""
    row = "unit of weight" if file.certificate.get("weights") else "row"
    facts = []
    for name, rate in (("unseen", cost_rate(file, unseen=True)), ("training", cost_rate(file, unseen=False))):
        ends = () if rate is None or rate.interval is None else rate.interval
        facts.append(
            {
                "title": f"Cost per {name} {row}",
                "row": row,
                "cost": None if rate is None else rate.words(rate.tree),
                "interval": " to ".join(number_text(end) for end in ends),
                "answer": None if rate is None else rate.answer,
                "constant": None if rate is None else rate.words(rate.constant),
            }
        )
    return facts


def leaf_frontier(model: TreeModel) -> list[dict[str, Any]]:
    """Return the points of the leaf frontier: correct rows, accuracy and bound. [] if it was not searched."""
    return [
        _frontier_point(model, n, p, f"{p['leaves']} {'leaf' if p['leaves'] == 1 else 'leaves'}")
        | {"id": f"tree-of-{p['leaves']}-leaves" if p.get("tree") else None}
        for n, p in _frontier(model, Evidence.LEAF_FRONTIER)
    ]


def unsettled_sizes(model: TreeModel) -> list[dict[str, int]]:
    """Return the leaf counts whose optimum is open: `leaves`, and `bound`, an upper bound on correct rows."""
    return _evidence(model, Evidence.LEAF_FRONTIER).get("unsettled", [])


def coefficient_frontier(model: TreeModel) -> list[dict[str, Any]]:
    """Return the points of the coefficient frontier: nonzero coefficients, correct rows and rules. [] if it was not searched."""
    return [
        _frontier_point(model, n, p, f"{p['coefficients']} coefficient{'' if p['coefficients'] == 1 else 's'}")
        | {"coefficients": p["coefficients"], "id": f"tree-of-{p['coefficients']}-coefficients"}
        for n, p in _frontier(model, Evidence.COEFFICIENT_FRONTIER)
    ]


def _frontier(model: TreeModel, kind: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the recorded points of a frontier, each with the number of rows."""
    evidence = _evidence(model, kind)
    return [(evidence["n"], p) for p in evidence.get("points", [])]


def _frontier_point(model: TreeModel, n: int, p: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the members that points of both frontiers share."""
    return {
        "name": name,
        "leaves": p["leaves"],
        "correct": p["correct"],
        "accuracy": p["correct"] / n,
        "bound": p["bound"],
        "proved": p["proved"],
        "claim": "proved" if p["proved"] else "gap",
        "rules": _rules(model, p),
    }


def frontier_tree(model: TreeModel, size: str, number: int) -> Tree | None:
    """Return the tree of a frontier with `number` leaves or coefficients (`size`), or None."""
    evidence = _evidence(model, {"leaves": Evidence.LEAF_FRONTIER, "coefficients": Evidence.COEFFICIENT_FRONTIER}[size])
    point: dict[str, Any] = next((p for p in evidence.get("points", []) if p[size] == number), {})
    return _tree(model, point)


def _tree(model: TreeModel, point: dict[str, Any]) -> Tree | None:
    if not point.get("tree"):
        return None
    tree = model_file(model).tree
    return tree_from_json(point["tree"], schema=tree.schema, classes=tree.classes)


def _rules(model: TreeModel, point: dict[str, Any]) -> str:
    """Return the tree of a point as text, or "" if it has none."""
    tree = _tree(model, point)
    return "" if tree is None else rules_text(tree, model_file(model).certificate)


def optimal_trees(model: TreeModel) -> dict[str, Any]:
    """Return the number of optimal trees, and the listed ones as text. {} if they were not counted."""
    evidence = _evidence(model, Evidence.OPTIMAL_TREES)
    trees = [_rules(model, {"tree": t}) if isinstance(t, list) else outline(t) for t in evidence.get("listed") or ()]
    return {"count": evidence["count"], "trees": trees} if evidence.get("count") else {}


def outline(tree: dict[str, Any] | None, indent: str = "") -> str:
    """Return a tree in the format of older files as indented lines."""
    if tree is None:
        return ""
    lines = [f"{indent}{tree['question']}"]
    for answer in ("no", "yes"):
        below = outline(tree[answer], indent + "      ")
        lines.append(f"{indent}  {answer}:" + (f"\n{below}" if below else " leaf"))
    return "\n".join(lines)


def _evidence(model: TreeModel, kind: str) -> dict[str, Any]:
    records = model_file(model).certificate.get("evidence") or []
    return next((dict(e) for e in records if e.get("kind") == kind), {})


def splits(model: TreeModel) -> list[dict[str, Any]]:
    """Return every branch with its split, rows and impurity, and whether the split is proved."""
    tree = model_file(model).tree
    return [_split(tree, v) for v in tree.branches]


def _split(tree: Tree, v: Node) -> dict[str, Any]:
    return {
        "id": v.id,
        "title": headline(tree, v),
        "rows": v.rows,
        "before": _gini(v.counts),
        "impurity": v.impurity,
        "after": sum(_gini(tree.nodes[c].counts) for c in (v.left, v.right)),
        "proved": v.split_proved,
    }


def _gini(counts: tuple[int, ...]) -> float:
    """Return the Gini impurity in rows: rows × (1 − Σ share²)."""
    rows = sum(counts)
    return rows - sum(c * c for c in counts) / rows if rows else 0.0


def fields(model: TreeModel, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the inputs of the form "try it", in the order of the splits, filled with the values `chosen`."""
    tree = model_file(model).tree
    out = []
    for j in columns_in_question_order(tree):
        column = tree.schema[j]
        choices = column.ranks or column.categories
        value = chosen.get(column.name, "")
        out.append(
            {
                "name": column.name,
                "id": f"try-{j}",
                "kind": str(column.kind),
                "unit": column.unit,
                "categories": choices[:LISTED_CATEGORIES],
                "listed": 0 < len(choices) <= LISTED_CATEGORIES,
                "value": (isinstance(value, int | float) and column.rank_word(value)) or value,
            }
        )
    return out


def columns_in_question_order(tree: Tree) -> list[int]:
    """Return the columns that the tree tests, in the order of its branches."""
    return list(dict.fromkeys(f for v in tree.branches if v.split is not None for f in v.split.used))


def parse_form_values(model: TreeModel, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the form as a record. Invalid numbers stay texts, which prediction reports."""
    file = model_file(model)
    record: dict[str, Any] = {}
    for j in file.tree.used_columns:
        column = file.tree.schema[j]
        text = query.get(f"try-{j}", "").strip()
        if text == "":
            continue
        if column.ranks:
            record[column.name] = column.ranks.index(text) + 1 if text in column.ranks else text
        elif column.kind is ColumnKind.CATEGORICAL:
            record[column.name] = text
        else:
            record[column.name] = typed_number(text, **number_writing(file, column))
    return record


def number_writing(file: ModelFile, column: ColumnSchema) -> NumberWriting:
    """Return the unit of a column, and whether the training file used decimal commas."""
    column_reading = ColumnParsing.from_json(file.reading).columns.get(column.name)
    comma = column_reading is not None and column_reading.number is not None and column_reading.number.decimal == ","
    return {"unit": unit(column), "decimal_comma": comma}


def walk_row(model: TreeModel, row: Any, *, title: str, actual: str | None = None, values: Any = None) -> Walk:
    """Return the path of a row of the matrix through the tree."""
    tree = model_file(model).tree
    leaf = int(tree.apply(row.reshape(1, -1))[0])
    answer = leaf_answer(tree, leaf)
    return Walk(
        title=title,
        nodes=tree.path_to(leaf),
        sentences=path_in_words(tree, leaf, row),
        label=answer["label"],
        probabilities=sorted(answer["probabilities"].items(), key=lambda item: -item[1])[:6],
        leaf=leaf,
        actual=actual,
        values=values or {},
    )


def find_row(query: Mapping[str, str], rows: DatasetRows | None) -> tuple[int | None, str]:
    """Return the position of the row with this `line` or `row` number, and "".

    If there is none, return None and the reason. The reason is "" if the query names no row.
    """
    by = "line" if query.get("line", "").strip() else "row"
    number = query.get(by, "").strip()
    if not number:
        return None, ""
    if rows is None:
        return None, "The rows of this model cannot be read, so no row can be followed."
    row_word = rows.called if by == "line" else by
    if not (number.isascii() and number.isdigit() and len(number) < 12):
        return None, f"'{number[:20]}' is not a {row_word} number."
    place = rows.at_line(int(number)) if by == "line" else rows.position(int(number))
    if place is not None:
        return place, ""
    if row_word == "line":
        return None, f"On line {int(number):,} of the uploaded file there is no row that this tree can read."
    return None, f"The data set has no row {int(number):,} that this tree can read."


def follow_row(model: TreeModel, place: int, rows: DatasetRows) -> Walk:
    """Return the path of the row at `place` through the tree."""
    title = f"{rows.called} {int(rows.shown[place]):,}"
    actual = model_file(model).tree.classes[rows.codes[place]]
    return walk_row(model, rows.matrix[place], title=title, actual=actual)


def rules(model: TreeModel) -> str:
    """Return the tree as text."""
    file = model_file(model)
    return rules_text(file.tree, file.certificate)


def data_of(model: TreeModel, *, inside: bool) -> DatasetRows | None:
    """Return the rows. None if they cannot be read, or if the user may not see them (`inside`)."""
    try:
        return rows_of(model) if inside else None
    except TrainerError:
        return None
