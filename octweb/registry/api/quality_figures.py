"""Return Plotly figures of the quality of a model.

They need the rows of the model, so only its owner and administrators get them.
"""

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
from octweb.figures.quality import calibration_figure, recall_figure, roc_figure
from octweb.figures.split.curve import threshold_figure
from octweb.registry.api.request import readable_model
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.page import performance, thresholds
from octweb.registry.page.scene import TRAINING, UNSEEN, ModelScene

FIGURE = {200: reference("Figure")}
PART = OpenApiParameter(
    "part", str, enum=[UNSEEN, TRAINING], description="which rows; by default the held-out ones, if there are any"
)
POSITIVE = OpenApiParameter(
    "positive", int, enum=[0, 1], description="the class that is looked for; the rarer one by default"
)


def _scene(request: Request, pk: uuid.UUID, **query: str) -> ModelScene:
    model = readable_model(request, pk)
    inside = may_see_rows(request.user, model)
    scene = ModelScene(model=model, user=request.user, inside=inside, query={**request.query_params.dict(), **query})
    if scene.rows is None:
        raise Http404("The rows of this model cannot be shown: they are gone, too many, or not yours.")
    return scene


class CalibrationFigure(APIView):
    """Calibration: the accuracy of each leaf on training rows and on held-out rows."""

    @extend_schema(responses=FIGURE | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        scene = _scene(request, pk)
        points = performance.calibration(scene)
        if not points:
            raise Http404(
                "No rows were held out of the training of this model. Train with a test share to get this figure."
            )
        return Response(calibration_figure(points, scene.tree.classes))


class _TwoClasses(APIView):
    """Base class of curves over the score thresholds of the leaves."""

    draw = staticmethod(roc_figure)

    def get(self, request: Request, pk: uuid.UUID) -> Response:
        scene = _scene(request, pk)
        part = request.query_params.get("part") or (scene.parts[0] if scene.parts else TRAINING)
        if part not in (UNSEEN, TRAINING):
            raise ValidationError({"part": f"'{part[:40]}' is neither {UNSEEN} nor {TRAINING}."})
        positive = performance.positive_class(scene)
        curve = performance.curve_of(scene, part, positive)
        if curve is None:
            raise Http404(f"This curve needs two classes and {part} rows, and the model lacks one of them.")
        names = scene.tree.classes[positive], scene.tree.classes[1 - positive]
        tree_point = performance.tree_point(scene, part, positive)
        return Response(self.draw(curve, *names, own=tree_point, **self.marks(scene, part, positive)))

    def marks(self, scene: ModelScene, part: str, positive: int) -> dict[str, Any]:
        """Return further arguments for `draw`."""
        return {}


@extend_schema(parameters=[PART, POSITIVE], responses=FIGURE | PROBLEMS(400, 401, 403, 404, 429))
class RocFigure(_TwoClasses):
    """ROC curve over the score thresholds of the leaves, for two classes.

    With costs, the cheapest threshold is marked.
    """

    def marks(self, scene: ModelScene, part: str, positive: int) -> dict[str, Any]:
        """Return the point of the cheapest score threshold, if costs are known."""
        cheapest = performance.cheapest_cut(scene, part, positive)
        return {} if cheapest is None else {"cheapest": (cheapest.found, cheapest.taken)}


@extend_schema(parameters=[PART, POSITIVE], responses=FIGURE | PROBLEMS(400, 401, 403, 404, 429))
class RecallFigure(_TwoClasses):
    """Precision against recall at the same score thresholds."""

    draw = staticmethod(recall_figure)


class ThresholdFigure(APIView):
    """Misclassified rows below a node for each threshold of its split. The rest of the tree is unchanged."""

    @extend_schema(responses=FIGURE | PROBLEMS(401, 403, 404, 429))
    def get(self, request: Request, pk: uuid.UUID, node: int) -> Response:
        scene = _scene(request, pk, node=str(node))
        cut_costs = thresholds.costs(scene) if node < len(scene.tree.nodes) else None
        if cut_costs is None or scene.node.split is None:
            raise Http404(f"This tree has no question with a threshold at node {node}. Choose another node.")
        column = scene.tree.schema[scene.node.split.used[0]]
        return Response(threshold_figure(cut_costs, f"{column.name} ({column.unit})" if column.unit else column.name))
