"""Convert LightGBM models of one tree, from `save_model` or `dump_model`.

The text and the JSON are read as data. LightGBM codes a category as a number and writes the category names of pandas at the end.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.convert.source import MOST_BYTES, class_text, too_deep, tree_of
from trainer.errors import ConversionError
from trainer.table import MISSING_CATEGORY, ColumnKind, ColumnSchema, EmptySide, MissingPolicy
from trainer.tree.nodes import Draft, DraftBranch, DraftLeaf, Tree
from trainer.tree.splits import Subset, Threshold

ZERO = float(np.float32(1e-35))  # if 0 means missing, LightGBM treats values up to this size as 0
# bits of LightGBM's `decision_type`
CATEGORICAL = 1
DEFAULT_LEFT = 2
MISSING = ("None", "Zero", "NaN")  # indexed by the third and fourth bit of `decision_type`
OBJECTIVE = re.compile(r"binary(\s|$)")
SIGMOID = re.compile(r"sigmoid:(\S+)")


@dataclass(frozen=True, kw_only=True)
class _Leaf:
    value: float


@dataclass(frozen=True, kw_only=True)
class _Branch:
    """A split on column `feature`: numbers up to `cut`, or else the codes in `members`, go left."""

    feature: int
    left: _Leaf | _Branch
    right: _Leaf | _Branch
    cut: float = 0.0
    members: frozenset[int] | None = None
    missing: str = "None"
    default_left: bool = False


@dataclass(frozen=True, kw_only=True)
class _Model:
    names: Sequence[str]
    levels: Mapping[int, Sequence[int]]  # for columns that list them, the codes of their categories
    categorical: Sequence[int] | None  # columns that the parameters declare as categorical; None if they do not say
    pandas: Sequence[Sequence[Any]] | None
    objective: str
    root: _Leaf | _Branch


def from_lightgbm(text: str | bytes, classes: Sequence[str] | None = None) -> Tree:
    """Convert a LightGBM model of one tree and two classes; rows without empty cells get the same class.

    Parameters
    ----------
    text : str or bytes
        The model as `save_model` or `dump_model` writes it; bytes are UTF-8.
    classes : sequence of str, optional
        Names of classes 0 and 1, which LightGBM does not store; "0" and "1" by default.

    Returns
    -------
    Tree

    Raises
    ------
    ConversionError
        If the text is not such a model, cannot be converted exactly or exceeds a limit, or if there are not two names.
    """
    if len(text) > MOST_BYTES:
        raise ConversionError(
            f"The model is larger than the limit of {MOST_BYTES // 10**6} MB. Give a model of one smaller tree."
        )
    try:
        plain = text.decode("utf-8") if isinstance(text, bytes) else text
        model = _read_json(plain) if plain.lstrip().startswith("{") else _read_text(plain)
    except ConversionError:
        raise
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConversionError(
            f"This is not a complete LightGBM model ({type(error).__name__}: {str(error)[:100]}). Write it again with save_model."
        ) from error
    class_names = ["0", "1"] if classes is None else [str(c) for c in classes]
    if len(class_names) != 2:
        raise ConversionError(
            f"The model has two classes, but you gave {len(class_names)} names. Name both classes in the order of the source, such as no,yes."
        )
    return tree_of(_draft(model), _schema(model), class_names)


# -- reading the text and the JSON -----------------------------------------------------------------------------------------


def _read_text(text: str) -> _Model:
    head, *trees = re.split(r"^Tree=\d+$", text, flags=re.MULTILINE)
    if not head.startswith("tree") or "end of trees" not in text:
        raise ConversionError(
            'This is not the text of a LightGBM model: it must begin with "tree" and contain "end of trees". Give the file of save_model.'
        )
    header = _pairs(head)
    _one_tree(len(trees), int(header["num_tree_per_iteration"]))
    tree_values = _pairs(trees[0].split("end of trees")[0])
    if int(tree_values.get("is_linear") or 0):
        raise ConversionError(
            "The leaves of this LightGBM tree are linear models, but each leaf needs one class. Train with linear_tree=false."
        )
    names = header["feature_names"].split(" ")
    infos = header.get("feature_infos", "").split(" ")
    levels = {
        j: [int(word) for word in info.split(":")] for j, info in enumerate(infos) if info and info[0] not in "[n"
    }
    tail = text.split("end of trees", 1)[1]
    categorical = re.search(r"^\[categorical_feature: ([\d,]*)\]$", tail, re.MULTILINE)
    pandas = re.search(r"^pandas_categorical:(.*)$", tail, re.MULTILINE)
    return _Model(
        names=names,
        levels=levels,
        categorical=None if categorical is None else [int(j) for j in categorical[1].split(",") if j],
        pandas=None if pandas is None else json.loads(pandas[1]),
        objective=header.get("objective", ""),
        root=_root_of_text(tree_values),
    )


def _pairs(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _root_of_text(tree_values: Mapping[str, str]) -> _Leaf | _Branch:
    values = [float(word) for word in tree_values["leaf_value"].split()]
    if int(tree_values["num_leaves"]) == 1:
        return _Leaf(value=values[0])
    integers = {
        name: [int(word) for word in tree_values.get(name, "").split()]
        for name in ("split_feature", "decision_type", "left_child", "right_child", "cat_boundaries", "cat_threshold")
    }
    cuts = [float(word) for word in tree_values["threshold"].split()]
    visited: set[int] = set()

    def visit(node: int, depth: int) -> _Leaf | _Branch:
        too_deep(depth)
        if node in visited:
            raise ConversionError(
                f"The LightGBM model is damaged: node {node} of its tree has two parents. Write it again with save_model."
            )
        visited.add(node)
        if node < 0:
            return _Leaf(value=values[~node])
        bits = integers["decision_type"][node]
        members = None
        if bits & CATEGORICAL:
            first, end = integers["cat_boundaries"][int(cuts[node]) : int(cuts[node]) + 2]
            members = frozenset(
                32 * i + b
                for i, word in enumerate(integers["cat_threshold"][first:end])
                for b in range(32)
                if word >> b & 1
            )
        return _Branch(
            feature=integers["split_feature"][node],
            left=visit(integers["left_child"][node], depth + 1),
            right=visit(integers["right_child"][node], depth + 1),
            cut=cuts[node],
            members=members,
            missing=MISSING[bits >> 2 & 3],
            default_left=bool(bits & DEFAULT_LEFT),
        )

    return visit(0, 0)


def _read_json(text: str) -> _Model:
    record = json.loads(text)
    if "tree_info" not in record:
        raise ConversionError('This JSON is not a LightGBM model: it has no "tree_info". Give the JSON of dump_model.')
    _one_tree(len(record["tree_info"]), int(record["num_tree_per_iteration"]))
    names = list(record["feature_names"])
    infos = record.get("feature_infos") or {}
    values = {names.index(name): info.get("values") or [] for name, info in infos.items() if name in names}
    return _Model(
        names=names,
        levels={j: [int(v) for v in codes] for j, codes in values.items() if codes},
        categorical=None,
        pandas=record.get("pandas_categorical"),
        objective=str(record.get("objective", "")),
        root=_root_of_json(record["tree_info"][0]["tree_structure"], 0),
    )


def _root_of_json(node: Mapping[str, Any], depth: int) -> _Leaf | _Branch:
    too_deep(depth)
    if "split_feature" not in node:
        if "leaf_coeff" in node:
            raise ConversionError(
                "The leaves of this LightGBM tree are linear models, but each leaf needs one class. Train with linear_tree=false."
            )
        return _Leaf(value=float(node["leaf_value"]))
    codes = node["decision_type"] == "=="
    if not codes and node["decision_type"] != "<=":
        raise ConversionError(
            f"The tree has the decision type '{str(node['decision_type'])[:20]}', which is neither '<=' nor '=='. Write the model again with dump_model."
        )
    if node["missing_type"] not in MISSING:
        raise ConversionError(
            f"The missing type '{str(node['missing_type'])[:20]}' is not one of {', '.join(MISSING)}. Write the model again with dump_model."
        )
    return _Branch(
        feature=int(node["split_feature"]),
        left=_root_of_json(node["left_child"], depth + 1),
        right=_root_of_json(node["right_child"], depth + 1),
        cut=0.0 if codes else float(node["threshold"]),
        members=frozenset(int(word) for word in str(node["threshold"]).split("||")) if codes else None,
        missing=node["missing_type"],
        default_left=bool(node["default_left"]),
    )


def _one_tree(trees: int, classes: int) -> None:
    if classes > 1:
        raise ConversionError(
            f"This LightGBM model has a tree for each of {classes} classes, but one tree is needed. "
            "Train it on two classes with the objective 'binary'."
        )
    if trees != 1:
        raise ConversionError(
            f"This LightGBM model has {trees} trees, but one is needed. Train it with n_estimators=1, or save one tree with "
            "save_model(…, num_iteration=1)."
        )


# -- conversion to a tree ----------------------------------------------------------------------------------------------------


def _schema(model: _Model) -> list[ColumnSchema]:
    """Return the columns; categorical ones have a category for missing values, which go right as in LightGBM."""
    levels = _levels(model)
    return [
        ColumnSchema(name=name, kind=ColumnKind.NUMERIC, missing=MissingPolicy.LEARN)
        if j not in levels
        else ColumnSchema(
            name=name,
            kind=ColumnKind.CATEGORICAL,
            categories=(*levels[j].values(), MISSING_CATEGORY),
            missing=MissingPolicy.CATEGORY,
        )
        for j, name in enumerate(model.names)
    ]


def _levels(model: _Model) -> dict[int, dict[int, str]]:
    """Map each categorical column to the names of its codes, in rising order of the codes."""
    codes_in_splits: dict[int, set[int]] = {}
    _walk(
        model.root,
        lambda v: (
            codes_in_splits.setdefault(v.feature, set()).update(v.members or ()) if v.members is not None else None
        ),
    )
    columns = sorted(
        set(model.categorical) if model.categorical is not None else set(codes_in_splits) | set(model.levels)
    )
    names_of_codes: dict[int, dict[int, str]] = {}
    if model.pandas:
        if len(columns) != len(model.pandas):
            raise ConversionError(
                "The file does not state which columns have the categories that it lists. Give the text of save_model, "
                "and give every categorical column the pandas dtype 'category'."
            )
        for j, values in zip(columns, model.pandas, strict=True):
            names_of_codes[j] = {code: class_text(value) for code, value in enumerate(values)}
    else:
        for j in columns:
            codes = {code for code in (*model.levels.get(j, ()), *codes_in_splits.get(j, ())) if code >= 0}
            names_of_codes[j] = {code: str(code) for code in sorted(codes)}
    for j, names in names_of_codes.items():
        if MISSING_CATEGORY in names.values() or len(set(names.values())) < len(names):
            raise ConversionError(
                f"Column '{model.names[j]}' has two categories that would have the same name in octweb. Rename one of them, and train again."
            )
    return names_of_codes


def _walk(node: _Leaf | _Branch, see: Callable[[_Branch], Any]) -> None:
    if isinstance(node, _Branch):
        see(node)
        _walk(node.left, see)
        _walk(node.right, see)


def _draft(model: _Model) -> Draft:
    if not OBJECTIVE.match(model.objective):
        raise ConversionError(
            f"The objective of this LightGBM model is '{model.objective[:40] or 'not stated'}', but a classification tree needs 'binary'. Train it with the objective 'binary'."
        )
    slope = SIGMOID.search(model.objective)
    sigmoid = float(slope[1]) if slope else 1.0
    places = {j: {code: place for place, code in enumerate(names)} for j, names in _levels(model).items()}

    def visit(node: _Leaf | _Branch) -> Draft:
        if isinstance(node, _Leaf):
            return DraftLeaf(label=_label(node.value, sigmoid))
        return _branch(node, visit(node.left), visit(node.right), model, places)

    return visit(model.root)


def _label(value: float, sigmoid: float) -> int:
    """Return the class that LightGBM's classifier predicts at a leaf; class 0 on a tie."""
    try:
        p = 1.0 / (1.0 + math.exp(-sigmoid * value))
    except OverflowError:
        p = 0.0
    return int(p > 1.0 - p)


def _branch(node: _Branch, left: Draft, right: Draft, model: _Model, places: Mapping[int, Mapping[int, int]]) -> Draft:
    name = model.names[node.feature]
    if node.members is not None:
        # a code that the column does not list cannot occur
        places_of_column = places[node.feature]
        codes = tuple(sorted(places_of_column[c] for c in node.members if c in places_of_column))
        return DraftBranch(split=Subset(feature=node.feature, codes=codes), left=left, right=right)
    if node.feature in places:
        raise ConversionError(
            f"Column '{name}' is categorical, but the tree compares it with a number. Write the model again with save_model."
        )
    # treating 0 as missing changes nothing if the threshold sends all values near 0 to the default side anyway
    if node.missing == "Zero" and not (node.cut >= ZERO if node.default_left else node.cut < -ZERO):
        raise ConversionError(
            f"The model treats 0 in column '{name}' as missing, which octweb does not support. "
            "Train with zero_as_missing=false."
        )
    # if the model has no missing type, LightGBM compares a missing value as if it were 0
    goes_left = node.cut >= 0 if node.missing == "None" else node.default_left
    side = EmptySide.LEFT if goes_left else EmptySide.RIGHT
    return DraftBranch(split=Threshold(feature=node.feature, threshold=node.cut, missing=side), left=left, right=right)
