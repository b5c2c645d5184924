"""Plotly pictures of a model, below /api/v1/: its tree, and each split with the rows that reach it."""

from __future__ import annotations

import uuid

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.figures.frontier import frontier_figure
from octweb.figures.split import split_figures
from octweb.figures.tree import tree_figure
from octweb.registry.api import readable_model
from octweb.registry.page import coefficient_frontier, data_of, frontier_tree, leaf_frontier
from octweb.registry.parsed import model_file


class TreeFigure(APIView):
    """The tree; `leaf` lights the way to a leaf. `leaves` or `coefficients` asks for the tree of that size on a frontier of the model."""

    @extend_schema(
        parameters=[
            OpenApiParameter("leaf", int, description="a leaf whose path is lit"),
            OpenApiParameter("leaves", int, description="the frontier's tree with so many leaves"),
            OpenApiParameter("coefficients", int, description="the frontier's tree with so many coefficients"),
        ],
        responses={200: OpenApiTypes.OBJECT} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        model = readable_model(request, pk)
        tree = model_file(model).tree
        for size in ("leaves", "coefficients"):
            if (number := _whole(request, size)) is not None:
                found = frontier_tree(model, size, number)
                if found is None:
                    raise Http404(f"No frontier of this model keeps a tree with {number} {size}.")
                tree = found
        leaf = _whole(request, "leaf")
        if leaf is not None and leaf >= len(tree.nodes):
            raise ValidationError({"leaf": f"This tree has the nodes 0 to {len(tree.nodes) - 1}."})
        return Response(tree_figure(tree, path=tree.path_to(leaf) if leaf is not None else ()))


class NodeFigure(APIView):
    """A split with the rows that reach it; for the model's owner and administrators, since it shows rows."""

    @extend_schema(
        parameters=[OpenApiParameter("picture", int, description="which of the split's pictures, from 0")],
        responses={200: OpenApiTypes.OBJECT} | PROBLEMS(400, 401, 403, 404, 429),
    )
    def get(self, request: Request, pk: uuid.UUID, node: int) -> Response:
        model = readable_model(request, pk)
        tree = model_file(model).tree
        number = _whole(request, "picture") or 0
        if node >= len(tree.nodes) or tree.nodes[node].is_leaf:
            raise Http404(f"This tree has no split at node {node}.")
        rows = data_of(model, inside=request.user.is_staff or request.user.pk == model.owner_id)
        if rows is None:
            raise Http404("The rows of this model cannot be shown: they are gone, too many, or not yours.")
        pictures = split_figures(tree, node, rows.matrix[rows.training], rows.codes[rows.training])
        if number >= len(pictures):
            raise Http404(f"This split has {len(pictures)} pictures.")
        return Response(pictures[number]["figure"])


class LeafFrontierFigure(APIView):
    """The most training rows correct for each number of leaves, as the exact search with `max_leaves` proves them."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        points = leaf_frontier(readable_model(request, pk))
        if not points:
            raise Http404(
                "This model has no frontier: train it with exact and a largest number of leaves, or with cut-h and pareto."
            )
        return Response(frontier_figure(points, rows="training rows"))


class CoefficientFrontierFigure(APIView):
    """The most training rows correct of the trees found with few coefficients other than 0."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT} | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        points = coefficient_frontier(readable_model(request, pk))
        if not points:
            raise Http404("This model has no frontier of coefficients: train it with cut-h or cutw-h and pareto.")
        return Response(frontier_figure(points, rows="training rows", size="coefficients"))


def _whole(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise ValidationError({name: f"'{text[:40]}' is not a whole number of at least 0."})
    return int(text)
