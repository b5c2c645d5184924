"""Return Plotly figures of a model's tree, splits and frontiers."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.model_schema import reference
from octweb.figures.frontier import frontier_figure
from octweb.figures.split import split_figures
from octweb.figures.tree_map import tree_map
from octweb.registry.api.request import readable_model
from octweb.registry.document.model_files import model_file
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.registry.page.content import coefficient_frontier, data_of, frontier_tree, leaf_frontier
from octweb.registry.page.node import heaviest
from octweb.registry.page.scene import ModelScene
from trainer.tree.nodes import Tree
from trainer.tree.render.figure import tree_figure
from trainer.tree.render.layout import FULL_TO
from trainer.tree.render.palette import without_legend

MOST_NUMBERS = 10_000  # a URL may contain at most this many node numbers


class TreeFigure(APIView):
    """The tree, with highlighted paths to the leaves in `leaf`.

    `leaves` or `coefficients` selects a tree on a frontier of the model. `levels` or `closed` sets which branches are
    closed. With only `width` and `height`, as many branches are open as are readable at that size. The owner and
    administrators see the number of correct unseen rows at the leaves.
    """

    @extend_schema(
        parameters=[
            OpenApiParameter("leaf", str, description="leaves with a highlighted path, separated by commas"),
            OpenApiParameter("leaves", int, description="the frontier's tree with this many leaves"),
            OpenApiParameter("coefficients", int, description="the frontier's tree with this many coefficients"),
            OpenApiParameter("levels", int, description="questions on a path that are shown"),
            OpenApiParameter("closed", str, description="branches that are closed, as numbers separated by commas"),
            OpenApiParameter(
                "show",
                int,
                description="a node to show: closed branches above it are opened, and the node itself by one level",
            ),
            OpenApiParameter("width", int, description="room for the picture, in pixels"),
            OpenApiParameter("height", int, description="room for the picture, in pixels"),
        ],
        responses={200: reference("Figure")} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = readable_model(request, pk)
        tree = model_file(model).tree
        for size in ("leaves", "coefficients"):
            if (number := _flag(request, size)) is not None:
                point_tree = frontier_tree(model, size, number)
                if point_tree is None:
                    raise Http404(
                        f"No frontier of this model has a tree with {number} {size}. Choose a size that a frontier lists."
                    )
                tree = point_tree
        leaves = _numbers(request, "leaf")
        if max(leaves, default=0) >= len(tree.nodes):
            words = f"There is no node {max(leaves)}. This tree has the nodes 0 to {len(tree.nodes) - 1}."
            raise ValidationError({"leaf": words})
        width, height, levels = (_flag(request, name) for name in ("width", "height", "levels"))
        figure = tree_figure(
            tree,
            path=list(dict.fromkeys(at for leaf in leaves for at in tree.path_to(leaf))),
            closed=_closed_branches(request, tree),
            levels=None if levels is None else max(1, levels),
            room=(float(width), float(height)) if width and height else None,
            **(_of_rows(request, model) if tree is model_file(model).tree else {}),
        )
        return Response(figure)


class TreeMap(APIView):
    """A small map of the whole tree. Leaves have the colours of their classes."""

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        return Response(tree_map(model_file(readable_model(request, pk)).tree))


class NodeFigure(APIView):
    """A split with the rows that reach it, for the model's owner and administrators."""

    @extend_schema(
        parameters=[
            OpenApiParameter("picture", int, description="which of the split's pictures, from 0"),
            OpenApiParameter(
                "legend", int, enum=[0, 1], description="0 leaves the legend out, for pages that have one"
            ),
        ],
        responses={200: reference("Figure")} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID, node: int) -> Response:
        model = readable_model(request, pk)
        tree = model_file(model).tree
        number = _flag(request, "picture") or 0
        if node >= len(tree.nodes) or tree.nodes[node].is_leaf:
            raise Http404(f"This tree has no split at node {node}. Choose a node that is not a leaf.")
        rows = data_of(model, inside=may_see_rows(request.user, model))
        if rows is None:
            raise Http404("The rows of this model cannot be shown: they are gone, too many, or not yours.")
        pictures = split_figures(tree, node, rows.matrix[rows.training], rows.codes[rows.training])
        if number >= len(pictures):
            raise Http404(f"This split has no picture {number}. Its pictures are 0 to {len(pictures) - 1}.")
        figure = pictures[number]["figure"]
        return Response(without_legend(figure) if _flag(request, "legend") == 0 else figure)


class LeafFrontierFigure(APIView):
    """The most correct training rows for each number of leaves, as proved by the exact search with `max_leaves`."""

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        points = leaf_frontier(readable_model(request, pk))
        if not points:
            raise Http404(
                "This model has no frontier: train it with exact and a largest number of leaves, or with cut-h and pareto."
            )
        return Response(frontier_figure(points, rows="training rows"))


class CoefficientFrontierFigure(APIView):
    """The most correct training rows for each number of nonzero coefficients, among the trees found."""

    @extend_schema(responses={200: reference("Figure")} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        points = coefficient_frontier(readable_model(request, pk))
        if not points:
            raise Http404("This model has no frontier of coefficients: train it with cut-h or cutw-h and pareto.")
        return Response(frontier_figure(points, rows="training rows", size="coefficients"))


def _scene(request: Request, model: TreeModel, **query: str) -> ModelScene:
    inside = may_see_rows(request.user, model)
    return ModelScene(model=model, user=request.user, inside=inside, query={**request.query_params.dict(), **query})


def _of_rows(request: Request, model: TreeModel) -> dict[str, Any]:
    """Return the counts of correct and of all unseen rows by leaf. Empty for users who may not see rows.

    For a small tree, also return the heaviest columns of each multivariate split.
    """
    scene = _scene(request, model)
    unseen = {leaf.id: scene.unseen_of(leaf) for leaf in scene.tree.leaves} if len(scene.part("unseen")) else {}
    return {"unseen": unseen, "notes": heaviest(scene) if scene.tree.n_leaves <= FULL_TO else {}}


def _closed_branches(request: Request, tree: Tree) -> list[int] | None:
    """Return the closed branches that the query names, or None if it names none."""
    if "closed" not in request.query_params:
        return None
    numbers = {number for number in _numbers(request, "closed") if number < len(tree.nodes)}
    return _reveal_node(tree, numbers, _flag(request, "show"))


def _reveal_node(tree: Tree, closed: set[int], node: int | None) -> list[int]:
    """Return `closed` without the branches that are or hide `node`.

    Branches just beside its path are closed instead.
    """
    if node is not None and node < len(tree.nodes):
        for at in tree.path_to(node):
            if at in closed:
                v = tree.nodes[at]
                closed = (closed - {at}) | {c for c in (v.left, v.right) if not tree.nodes[c].is_leaf}
    return sorted(closed)


def _numbers(request: Request, name: str) -> list[int]:
    """Return the node numbers in a parameter such as `3,7`. Empty if it is absent. Raises ValidationError."""
    parts = [part for part in request.query_params.get(name, "").split(",") if part]
    if len(parts) > MOST_NUMBERS or not all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts):
        raise ValidationError({name: f"Give at most {MOST_NUMBERS:,} numbers of nodes, separated by commas."})
    return [int(part) for part in parts]


def _flag(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise ValidationError({name: f"'{text[:40]}' is not a whole number of at least 0."})
    return int(text)
