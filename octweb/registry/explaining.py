"""API of explanations, below /api/v1/: the way of each row, and the smallest change that gives another answer."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.parsers import StrictJSONParser, TooLarge
from octweb.registry.api import callable_model, rows_of
from octweb.registry.data import rows_of as stored_rows
from octweb.registry.models import TreeModel
from octweb.registry.parsed import ParsedModels, model_file
from trainer.data.rows import parse_rows
from trainer.errors import ParameterError
from trainer.explain.flip import Flipper
from trainer.explain.permission import Permission, permissions
from trainer.explain.record import explained
from trainer.explain.statistics import ColumnStatistics, statistics, statistics_of_tree
from trainer.tree.nodes import Tree

MAX_ROWS = 100
SECONDS = 10.0  # for the mixed-integer programs of one call
MEMBERS = {"rows", "change", "wanted"}
FROM_ROWS, FROM_TREE = "training rows", "thresholds of the tree: the training rows are not stored"

_statistics: ParsedModels[tuple[ColumnStatistics, ...]] = ParsedModels()


class ExplainRequestSerializer(serializers.Serializer):
    """Rows as in predict, what may change, and the answer to reach."""

    rows = serializers.ListField(child=serializers.DictField(child=serializers.JSONField(allow_null=True)))
    change = serializers.DictField(
        child=serializers.JSONField(),
        required=False,
        help_text="column → free, up, down, whole or never, several with commas; of categories a list of those in reach",
    )
    wanted = serializers.CharField(required=False, help_text="the class to reach; any other where it is left out")


class ExplainedSerializer(serializers.Serializer):
    """The explanations of a call, in the order of its rows."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    measured_on = serializers.CharField(help_text="what the units of changes are from")
    explanations = serializers.ListField(child=serializers.DictField())
    notes = serializers.ListField(child=serializers.CharField(), help_text="what was done with odd values")


class ModelExplain(APIView):
    """Explain the answers for rows. Whoever may predict with the model may ask."""

    predict_scope = True
    parser_classes = [StrictJSONParser]

    @extend_schema(
        operation_id="models_explain",
        request={"application/json": ExplainRequestSerializer},
        responses={200: ExplainedSerializer} | PROBLEMS(400, 401, 403, 404, 413, 415, 422, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = callable_model(request, pk, document=False)
        rows, allowed, wanted = _asked(request.data, model_file(model).tree)
        tree = model_file(model).tree
        parsed = parse_rows(tree.schema, tree.used_columns, rows)
        known, source = statistics_of(model)
        flipper = Flipper(tree, known, allowed, seconds=SECONDS)
        return Response(
            {
                "model": str(model.pk),
                "name": model.family.name,
                "version": model.version,
                "measured_on": source,
                "explanations": [explained(flipper, row, i, wanted) for i, row in enumerate(parsed.matrix)],
                "notes": [str(note) for note in parsed.notes],
            }
        )


def statistics_of(model: TreeModel) -> tuple[tuple[ColumnStatistics, ...], str]:
    """The statistics of the columns on the training rows, where they are stored, and what they are from."""
    key = f"{model.sha256}:{model.dataset.sha256 if model.dataset else ''}"
    found = _statistics.get(key)
    if found is not None:
        return found, FROM_ROWS
    tree, rows = model_file(model).tree, stored_rows(model)
    if rows is None or not rows.same:
        return statistics_of_tree(tree), FROM_TREE
    found = statistics(tree.schema, rows.matrix[rows.training])
    _statistics.put(key, found, 100 * len(found))
    return found, FROM_ROWS


def _asked(body: Any, tree: Tree) -> tuple[list[Any], tuple[Permission, ...], int | None]:
    """Rows, permissions and wanted class of a body; raises 400 that names the member, and 413 for too many rows."""
    if not isinstance(body, dict):
        raise ParseError('The body must be an object with the member "rows": {"rows": [{"column": value}]}.')
    if unknown := set(body) - MEMBERS:
        raise ValidationError({sorted(unknown)[0][:60]: 'Not known. The members are "rows", "change" and "wanted".'})
    rows = rows_of({"rows": body.get("rows")})
    if len(rows) > MAX_ROWS:
        raise TooLarge(f"{len(rows):,} rows are too many to explain; {MAX_ROWS} is the limit of one call.")
    change, wanted = body.get("change", {}), body.get("wanted")
    if not isinstance(change, dict):
        raise ValidationError({"change": "An object is needed: column → free, up, down, whole or never."})
    if wanted is not None and wanted not in tree.classes:
        raise ValidationError({"wanted": f"The model has no such class; it has {', '.join(tree.classes)}."})
    try:
        allowed = permissions(tree.schema, change)
    except ParameterError as error:
        raise ValidationError({"change": str(error)}) from error
    return rows, allowed, None if wanted is None else tree.classes.index(wanted)
