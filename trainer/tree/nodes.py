"""Define the tree of all methods, and the drafts that build it.

A method returns a draft (nested `DraftBranch` and `DraftLeaf`). `grow` routes the training rows through it, counts
classes and numbers the nodes breadth first from 0, the root. Counts never come from a solver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trainer.dtypes import BoolArray, CodeArray, CountArray, FloatArray
from trainer.errors import ModelFileError
from trainer.table import ColumnKind, ColumnSchema, UnknownPolicy
from trainer.tree.document import columns_of, document, read_document, write_document
from trainer.tree.route import FlatTree, apply, flatten
from trainer.tree.splits import Split, rows_go_left, split_from_json, split_to_json

MAX_NODES = 1_000_000
ROUNDING = 1e-9  # tolerance for impurities, as a share of the rows


@dataclass(frozen=True, kw_only=True)
class DraftLeaf:
    """A leaf that predicts class `label`, or the majority of its training rows if `label` is None."""

    label: int | None = None


@dataclass(frozen=True, kw_only=True)
class DraftBranch:
    """A branch; `impurity` and `impurity_bound` (in rows) are set by methods that prove each split separately."""

    split: Split
    left: Draft
    right: Draft
    impurity: float | None = None
    impurity_bound: float | None = None
    measure: str = ""


Draft = DraftBranch | DraftLeaf


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of a tree; `split` is None at a leaf. `counts` are the training rows of each class that reach it."""

    id: int
    counts: tuple[int, ...]
    label: int
    split: Split | None = None
    left: int = -1
    right: int = -1
    impurity: float | None = None
    impurity_bound: float | None = None
    measure: str = ""

    @property
    def is_leaf(self) -> bool:
        return self.split is None

    @property
    def rows(self) -> int:
        return sum(self.counts)

    @property
    def split_proved(self) -> bool:
        """Whether the impurity of the split equals its lower bound (in rows, up to rounding)."""
        if self.impurity is None or self.impurity_bound is None:
            return False
        return self.impurity - self.impurity_bound <= ROUNDING * max(1, self.rows)


def class_words(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the classes as they are written beside answers to questions: "class yes" if one is called like an answer.

    Parameters
    ----------
    classes : sequence of str

    Returns
    -------
    tuple of str
    """
    like_answers = any(name.strip().lower() in ("yes", "no") for name in classes)
    return tuple(f"class {name}" if like_answers else name for name in classes)


@dataclass(frozen=True, kw_only=True, repr=False)
class Tree:
    """A binary classification tree over the columns of `schema` that predicts one of `classes`.

    `count_unit` is the unit of the counts of its nodes, as `counted_words` returns it.
    """

    schema: tuple[ColumnSchema, ...]
    classes: tuple[str, ...]
    nodes: tuple[Node, ...]
    count_unit: str = field(default="rows", compare=False)

    @cached_property
    def flat(self) -> FlatTree:
        """The arrays of the prediction kernel."""
        return flatten([(v.split, v.left, v.right) for v in self.nodes], self.schema)

    @cached_property
    def labels(self) -> CodeArray:
        """Class of each node, int32 of shape (nodes,); the majority at a branch."""
        return np.array([v.label for v in self.nodes], np.int32)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Class shares of the training rows, float64 of shape (nodes, classes); an empty leaf has share 1 for its label."""
        counts = np.array([v.counts for v in self.nodes], np.float64).reshape(len(self.nodes), len(self.classes))
        empty = counts.sum(axis=1) == 0
        counts[empty, self.labels[empty]] = 1.0
        return counts / counts.sum(axis=1, keepdims=True)

    @cached_property
    def class_words(self) -> tuple[str, ...]:
        """The classes as they are written beside answers to questions: "class yes" if one is called like an answer."""
        return class_words(self.classes)

    def counted(self, n: int) -> str:
        """Return a count of its nodes with its unit: "1 row", "2,048 rows", "2,048 of weight"."""
        return "1 row" if n == 1 and self.count_unit == "rows" else f"{n:,} {self.count_unit}"

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The leaves, in the order of their ids."""
        return tuple(v for v in self.nodes if v.is_leaf)

    @property
    def branches(self) -> tuple[Node, ...]:
        """The nodes with a split, in the order of their ids."""
        return tuple(v for v in self.nodes if not v.is_leaf)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return sum(v.is_leaf for v in self.nodes)

    @property
    def n_coefficients(self) -> int:
        """The number of terms in all splits.

        A sum counts its terms, a set of categories the smaller of the set and its complement, at least one.
        """
        return sum(v.split.size(self.schema) for v in self.nodes if v.split is not None)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The parent of each node; -1 at the root."""
        parent = [-1] * len(self.nodes)
        for v in self.nodes:
            if not v.is_leaf:
                parent[v.left] = parent[v.right] = v.id
        return tuple(parent)

    @property
    def depth(self) -> int:
        """The largest number of splits on a path from the root to a leaf."""
        level = [0] * len(self.nodes)
        for v in self.nodes:  # in breadth-first order, children follow their parents
            if not v.is_leaf:
                level[v.left] = level[v.right] = level[v.id] + 1
        return max(level)

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The height of the subtree of each node: its largest number of splits on a path, 0 at a leaf."""
        heights = [0] * len(self.nodes)
        for v in reversed(self.nodes):
            if not v.is_leaf:
                heights[v.id] = 1 + max(heights[v.left], heights[v.right])
        return tuple(heights)

    @cached_property
    def used_columns(self) -> tuple[int, ...]:
        """Indices of the columns that some split reads, sorted."""
        return tuple(sorted({f for v in self.nodes if v.split is not None for f in v.split.used}))

    @cached_property
    def used_names(self) -> frozenset[str]:
        """Names of the columns that some split reads."""
        return frozenset(self.schema[j].name for j in self.used_columns)

    @cached_property
    def refused_columns(self) -> tuple[int, ...]:
        """Indices of the columns in which an empty cell gets no answer, sorted."""
        refused = {f for v in self.nodes if v.split is not None for f in v.split.refused}
        return tuple(
            sorted(
                f
                for f in refused
                if self.schema[f].kind is not ColumnKind.CATEGORICAL or not self.schema[f].answers_empty
            )
        )

    @cached_property
    def unknown_refused(self) -> tuple[int, ...]:
        """Indices of the used columns whose contract refuses new categories, sorted."""
        columns = self.schema
        return tuple(
            j
            for j in self.used_columns
            if columns[j].kind is ColumnKind.CATEGORICAL and columns[j].unknown is UnknownPolicy.REFUSE
        )

    def has_empty(self, X: FloatArray) -> BoolArray:
        """Return the mask of rows with an empty cell in a used column.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows; an empty cell is NaN or the category for empty cells.

        Returns
        -------
        bool array of shape (n,)
        """
        return np.asarray(self._empty_used(X[:, self.used_columns]).any(axis=1))

    def _empty_used(self, cells: FloatArray) -> BoolArray:
        """Return the mask of empty cells, bool (n, used columns)."""
        codes = np.array([np.nan if (code := self.schema[j].missing_code) is None else code for j in self.used_columns])
        mask: BoolArray = np.isnan(cells) | (cells == codes)
        return mask

    def unusual_cells(self, X: FloatArray) -> dict[str, dict[str, int]]:
        """Count the unusual cells of the used columns.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows as the kernel reads them: NaN or the category for empty cells, -1 for an unknown category.

        Returns
        -------
        dict of str to dict of str to int
            Numbers of cells by column name, for `empty`, `unknown`, `below` and `above` (the training range), without zeros.
        """
        cells = X[:, self.used_columns]
        low, high = self._ranges
        below = cells < low
        above = cells > high
        for k, codes in self._codes:
            sizes = ~np.isin(cells[:, k], codes)
            below[:, k] &= sizes
            above[:, k] &= sizes
        categorical = np.array([self.schema[j].kind is ColumnKind.CATEGORICAL for j in self.used_columns], bool)
        kinds = {
            "empty": self._empty_used(cells),
            "unknown": categorical & (cells < 0),
            "below": below,
            "above": above,
        }
        names = [self.schema[j].name for j in self.used_columns]
        return {
            kind: {name: n for name, n in zip(names, cells.sum(axis=0).tolist(), strict=True) if n}
            for kind, cells in kinds.items()
            if cells.any()
        }

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the training ranges of the used columns; infinite if a range is unknown."""
        ranges = [self.schema[j].range or (-np.inf, np.inf) for j in self.used_columns]
        return np.array([low for low, _ in ranges]), np.array([high for _, high in ranges])

    @cached_property
    def _codes(self) -> tuple[tuple[int, tuple[float, ...]], ...]:
        """For each used column with special values: its index in `used_columns`, and these values."""
        return tuple((k, self.schema[j].special) for k, j in enumerate(self.used_columns) if self.schema[j].special)

    def outside(self, X: FloatArray) -> BoolArray:
        """Return the mask of cells outside the training range; codes are inside.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows.

        Returns
        -------
        bool array of shape (n, used columns)
            In the order of `used_columns`.
        """
        low, high = self._ranges
        cells = X[:, self.used_columns]
        mask: BoolArray = (cells < low) | (cells > high)
        for k, codes in self._codes:
            mask[:, k] &= ~np.isin(cells[:, k], codes)
        return mask

    def empty_cells(self, X: FloatArray) -> BoolArray:
        """Return the mask of empty cells in the columns on each row's path.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows; an empty cell is NaN or the category for empty cells.

        Returns
        -------
        bool array of shape (n, columns)
        """
        mask = np.zeros((len(X), len(self.schema)), bool)
        rows = self.reach(X)
        for v in self.branches:
            for f in () if v.split is None else v.split.used:
                cells = X[rows[v.id], f]
                code = self.schema[f].missing_code
                mask[rows[v.id], f] |= np.isnan(cells) if code is None else cells == code
        return mask

    def unseen_empty(self, X: FloatArray) -> BoolArray:
        """Return the mask of empty cells that take a side without training rows.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows.

        Returns
        -------
        bool array of shape (n, columns)
        """
        mask = np.zeros((len(X), len(self.schema)), bool)
        rows = self.reach(X)
        for v in self.branches:
            if v.split is None:
                continue
            for f in v.split.used:
                # in a categorical column, empty training cells are a category
                if self.schema[f].kind is ColumnKind.CATEGORICAL or v.split.unseen_empty(self.schema[f]):
                    mask[rows[v.id], f] |= np.isnan(X[rows[v.id], f])
        return mask

    def apply(self, X: FloatArray) -> CodeArray:
        """Return the leaf of each row.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows, with NaN for empty cells and categories as codes.

        Returns
        -------
        int32 array of shape (n,)
            Node ids.
        """
        return apply(self.flat, X)

    def predict(self, X: FloatArray) -> CodeArray:
        """Return the class of each row.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows, as for `apply`.

        Returns
        -------
        int32 array of shape (n,)
            Indices into `classes`.
        """
        return self.labels[self.apply(X)]

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the class shares of each row's leaf.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows, as for `apply`.

        Returns
        -------
        float64 array of shape (n, classes)
        """
        return self.probabilities[self.apply(X)]

    def decision_path(self, X: FloatArray) -> CodeArray:
        """Return the node ids from the root to the leaf of each row, padded with -1.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows, as for `apply`.

        Returns
        -------
        int32 array of shape (n, depth + 1)
        """
        paths = np.full((len(self.nodes), self.depth + 1), -1, np.int32)
        for leaf in self.leaves:
            path = self.path_to(leaf.id)
            paths[leaf.id, : len(path)] = path
        return paths[self.apply(X)]

    def asked_columns(self) -> np.ndarray:
        """Return whether the path to a node uses a column, bool (nodes, columns)."""
        uses_column = np.zeros((len(self.nodes), len(self.schema)), bool)
        for v in self.branches:  # a parent precedes its children in the list
            assert v.split is not None
            uses_column[v.left] = uses_column[v.id]
            uses_column[v.left, list(v.split.used)] = True
            uses_column[v.right] = uses_column[v.left]
        return uses_column

    def path_to(self, node: int) -> list[int]:
        """Return the node ids from the root to `node`, both included.

        Parameters
        ----------
        node : int
            Id of a node.

        Returns
        -------
        list of int
        """
        path = [node]
        while self.parents[path[-1]] >= 0:
            path.append(self.parents[path[-1]])
        return path[::-1]

    def reach(self, X: FloatArray) -> list[np.ndarray]:
        """Return for every node the indices of the rows of X that reach it.

        Parameters
        ----------
        X : float64 array of shape (n, columns)
            Rows, as for `apply`.

        Returns
        -------
        list of int64 arrays
            One array for each node, in the order of the ids.
        """
        rows: list[np.ndarray] = [np.zeros(0, np.int64)] * len(self.nodes)
        rows[0] = np.arange(len(X))
        for v in self.nodes:
            if v.split is not None:
                left = rows_go_left(v.split, X, rows[v.id])
                rows[v.left] = rows[v.id][left]
                rows[v.right] = rows[v.id][~left]
        return rows

    def to_json(self) -> list[dict[str, Any]]:
        """Return the nodes as in the model file."""
        records = []
        for v in self.nodes:
            record: dict[str, Any] = {"id": v.id, "counts": list(v.counts)}
            if v.split is None:
                record["class"] = self.classes[v.label]
            else:
                record |= {"split": split_to_json(v.split, self.schema), "left": v.left, "right": v.right}
                if v.impurity is not None:
                    record |= {"impurity": v.impurity, "impurity_bound": v.impurity_bound, "measure": v.measure}
            records.append(record)
        return records

    def plot(self, *, width: float = 1100.0, height: float = 700.0) -> Any:
        """Return the tree as a `plotly.graph_objects.Figure`.

        Parameters
        ----------
        width, height : float
            Size in pixels. Subtrees that would be too small to read start closed.

        Raises
        ------
        ImportError
            If plotly is not installed.
        """
        # import late, because the renderer imports this module and plotly takes a second to import
        from plotly.graph_objects import Figure

        from trainer.tree.render.figure import tree_figure
        from trainer.tree.render.tokens import resolve_tokens

        return Figure(resolve_tokens(tree_figure(self, room=(width, height))))

    def __repr__(self) -> str:
        """Return one line; `rules_text` and `to_json` have the full tree."""
        leaves = "1 leaf" if self.n_leaves == 1 else f"{self.n_leaves} leaves"
        return f"<Tree: {leaves}, depth {self.depth}, {len(self.schema)} columns, {len(self.classes)} classes>"

    def _repr_html_(self) -> str:
        from trainer.tree.render.html import tree_html

        return tree_html(self)

    def save(self, path: str) -> None:
        """Write the tree as a model file without a claim; `trainer.tree.file` writes the model file of a training.

        Parameters
        ----------
        path : str
            The file; an old one stays until the new one is complete.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_document(document(self.to_json(), schema=self.schema, classes=self.classes), path)

    @staticmethod
    def load(path: str) -> Tree:
        """Read the tree of a model file.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        Tree

        Raises
        ------
        ModelFileError
            If the file is not a model file, or is damaged.
        OSError
            If the file cannot be opened.
        """
        document = read_document(path)
        return tree_from_json(document["nodes"], schema=columns_of(document), classes=document["classes"])


def grow(
    draft: Draft,
    matrix: FloatArray,
    codes: CodeArray,
    *,
    schema: Sequence[ColumnSchema],
    classes: Sequence[str],
    weights: CountArray | None = None,
    costs: CountArray | None = None,
) -> Tree:
    """Build the tree of a draft with the counts of some rows; number its nodes breadth first.

    Parameters
    ----------
    draft : Draft
    matrix : float64 array of shape (n, columns)
        The rows.
    codes : int32 array of shape (n,)
        Their classes.
    schema : sequence of ColumnSchema
    classes : sequence of str
    weights : int64 array of shape (n,), optional
        Row weights; a row of weight w counts as w rows.
    costs : int64 array of shape (n, n_classes), optional
        Costs of answers. A leaf then takes the cheapest answer for its rows, the first one among equals.
    """
    nodes: list[Node] = []
    queue: deque[tuple[Draft, np.ndarray, int]] = deque([(draft, np.arange(len(matrix)), 0)])
    while queue:
        item, rows, fallback = queue.popleft()
        counts = _class_counts(codes[rows], None if weights is None else weights[rows], len(classes))
        answer = fallback
        if counts.any():
            answer = int(counts.argmax()) if costs is None else int(costs[rows].sum(axis=0).argmin())
        number = len(nodes)
        tally = tuple(int(c) for c in counts)
        if isinstance(item, DraftLeaf):
            nodes.append(Node(id=number, counts=tally, label=answer if item.label is None else item.label))
            continue
        left = rows_go_left(item.split, matrix, rows)
        child = len(nodes) + len(queue) + 1
        nodes.append(
            Node(
                id=number,
                counts=tally,
                label=answer,
                split=item.split,
                left=child,
                right=child + 1,
                impurity=item.impurity,
                impurity_bound=item.impurity_bound,
                measure=item.measure,
            )
        )
        queue.append((item.left, rows[left], answer))
        queue.append((item.right, rows[~left], answer))
    return Tree(schema=tuple(schema), classes=tuple(classes), nodes=tuple(nodes))


def _class_counts(codes: np.ndarray, weights: CountArray | None, classes: int) -> CountArray:
    if weights is None:
        return np.bincount(codes, minlength=classes).astype(np.int64)
    counts = np.zeros(classes, np.int64)
    np.add.at(counts, codes, weights)  # `bincount` would sum the weights in floating point
    return counts


def to_draft(tree: Tree, node: int = 0) -> Draft:
    """Return the draft of the subtree at `node`: the inverse of `grow`, without counts."""
    v = tree.nodes[node]
    if v.split is None:
        return DraftLeaf(label=v.label)
    return DraftBranch(
        split=v.split,
        left=to_draft(tree, v.left),
        right=to_draft(tree, v.right),
        impurity=v.impurity,
        impurity_bound=v.impurity_bound,
        measure=v.measure,
    )


def simplify(tree: Tree) -> Draft:
    """Return the draft without splits that send every training row one way, or whose two leaves predict the same class.

    This changes no prediction of a training row and saves leaves.
    """

    def visit(node: int) -> Draft:
        v = tree.nodes[node]
        if v.split is None:
            return DraftLeaf(label=v.label)
        if tree.nodes[v.left].rows == 0:
            return visit(v.right)
        if tree.nodes[v.right].rows == 0:
            return visit(v.left)
        left = visit(v.left)
        right = visit(v.right)
        if isinstance(left, DraftLeaf) and isinstance(right, DraftLeaf) and left.label == right.label:
            return left
        draft = to_draft_branch(v)
        return replace(draft, left=left, right=right)

    return visit(0)


def to_draft_branch(node: Node) -> DraftBranch:
    """Return the branch of `node` with two placeholder leaves."""
    if node.split is None:
        raise ModelFileError(f"Node {node.id} is a leaf, not a branch.")
    return DraftBranch(
        split=node.split,
        left=DraftLeaf(),
        right=DraftLeaf(),
        impurity=node.impurity,
        impurity_bound=node.impurity_bound,
        measure=node.measure,
    )


def tree_from_json(
    records: Sequence[dict[str, Any]], *, schema: Sequence[ColumnSchema], classes: Sequence[str]
) -> Tree:
    """Read the tree from the nodes of a model file; raise ModelFileError unless they form a binary tree with root 0."""
    if not records or len(records) > MAX_NODES:
        raise ModelFileError(f"A tree needs 1 to {MAX_NODES:,} nodes, but the file has {len(records):,}.")
    code = {label: k for k, label in enumerate(classes)}
    nodes: list[Node] = []
    # as in `grow`, a branch without rows has the class of its parent
    fallback = [0] * len(records)
    for i, record in enumerate(records):
        if record.get("id", i) != i:
            raise ModelFileError(
                f"Node {i} has the id {record.get('id')}, but each id must be the position in the list."
            )
        counts = tuple(int(c) for c in record["counts"])
        if len(counts) != len(classes):
            raise ModelFileError(
                f"Node {i} has {len(counts)} counts for {len(classes)} classes. It needs one for each class."
            )
        if "split" in record:
            left = int(record["left"])
            right = int(record["right"])
            if not (i < left < len(records) and i < right < len(records) and left != right):
                raise ModelFileError(f"The children of node {i} must be two later nodes of the list.")
            label = counts.index(max(counts)) if any(counts) else fallback[i]
            fallback[left] = fallback[right] = label
            nodes.append(
                Node(
                    id=i,
                    counts=counts,
                    label=label,
                    split=split_from_json(record["split"], schema),
                    left=left,
                    right=right,
                    impurity=record.get("impurity"),
                    impurity_bound=record.get("impurity_bound"),
                    measure=str(record.get("measure", "")),
                )
            )
        else:
            if record.get("class") not in code:
                raise ModelFileError(f"Leaf {i} predicts '{record.get('class')}', which is not one of the classes.")
            nodes.append(Node(id=i, counts=counts, label=code[record["class"]]))
    child_ids = [c for v in nodes if not v.is_leaf for c in (v.left, v.right)]
    if sorted(child_ids) != list(range(1, len(nodes))):
        raise ModelFileError("The nodes do not form one tree: some node has no parent, or more than one.")
    return Tree(schema=tuple(schema), classes=tuple(classes), nodes=tuple(nodes))


def training_counts(
    tree: Tree, matrix: FloatArray, codes: CodeArray, weights: CountArray | None = None
) -> tuple[int, CountArray]:
    """Return the correctly classified rows (or their weight), and the confusion matrix, int64 (actual, predicted)."""
    k = len(tree.classes)
    cells = codes.astype(np.int64) * k + tree.predict(matrix)
    confusion = _class_counts(cells, weights, k * k).reshape(k, k)
    return int(np.trace(confusion)), confusion
