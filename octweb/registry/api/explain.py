"""Explain predictions by the API: path and counterfactual of each row."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from octweb.core.api import PROBLEMS
from octweb.core.parsers import BodyTooLarge, StrictJSONParser
from octweb.registry import hooks
from octweb.registry.api.request import callable_model, rows_of
from octweb.registry.document import units
from octweb.registry.document.model_files import model_file
from octweb.registry.document.reasons import ModelReasons
from octweb.registry.lifecycle import access
from octweb.registry.models import TreeModel
from octweb.registry.prediction.predictions import without_ignored
from octweb.registry.prediction.retired import DRY_RUN_PARAMETER, RETIRED_HELP, retired_headers, retired_member
from trainer.data.parsing.values import plain_values, sources_named
from trainer.data.rows import parse_rows
from trainer.errors import ParameterError
from trainer.explain.flip import Flipper
from trainer.explain.least import COLUMNS, ORDERS, least_of
from trainer.explain.permission import Permission, permissions
from trainer.explain.record import explain_row
from trainer.explain.statistics import cost_source, with_costs
from trainer.tree.nodes import Tree

MAX_ROWS = 100
SECONDS = 10.0  # time limit of all mixed-integer programs in a call
MEMBERS = {"rows", "change", "cost", "least", "wanted"}


class ExplainRequestSerializer(serializers.Serializer):
    """Rows as in predict, permitted changes, and the class to reach."""

    rows = serializers.ListField(child=serializers.DictField(child=serializers.JSONField(allow_null=True)))
    change = serializers.DictField(
        child=serializers.JSONField(),
        required=False,
        help_text="column → free, up, down, whole, fill or never (several joined by commas), or a list of the categories that are allowed. "
        "A column that is not named is as the owner of the model marked it, or free.",
    )
    cost = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="column → what a change of 1 costs, instead of 1 / unit; for numbers",
    )
    least = serializers.ChoiceField(
        list(ORDERS.items()),
        required=False,
        default=COLUMNS,
        help_text="which change is the smallest: fewest columns first, then the total (columns), or only the total (total)",
    )
    wanted = serializers.CharField(required=False, help_text="the class to reach; if it is left out, any other class")


class ExplainedSerializer(serializers.Serializer):
    """The explanations of a call, in the order of its rows."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    retired = serializers.CharField(required=False, help_text=RETIRED_HELP)
    measured_on = serializers.CharField(help_text="where the units of the changes come from")
    least = serializers.ChoiceField(list(ORDERS.items()), help_text="by which order the changes are the smallest")
    explanations = serializers.ListField(
        child=serializers.DictField(),
        help_text="as by `explain --json`, and `reasons`: the principal ones, and the values of each column that are enough alone",
    )
    notes = serializers.ListField(child=serializers.CharField(), help_text="how unusual values were treated")


class ModelExplain(APIView):
    """Explain the answers for rows. All users who may predict with the model may call it."""

    predict_scope = True
    parser_classes = [StrictJSONParser]

    @extend_schema(
        operation_id="models_explain",
        request={"application/json": ExplainRequestSerializer},
        parameters=[DRY_RUN_PARAMETER],
        responses={200: ExplainedSerializer} | PROBLEMS(400, 401, 403, 404, 410, 413, 415, 422, 429),
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        model = callable_model(request, pk, document=False)
        tree = model_file(model).tree
        rows, allowed, wanted_class = _parse_body(request.data, tree, hooks.column_permissions(model))
        reading = model_file(model).reading
        rows, _ = without_ignored(model, rows)
        with sources_named(reading):
            parsed = parse_rows(
                tree.schema,
                tree.used_columns,
                plain_values(reading, rows, tree.used_names),
                refused=tree.refused_columns,
            )
        statistics, source = units.statistics_of(model, inside=may_see_rows(request.user, model))
        cost = _costs(request.data)
        try:
            statistics = with_costs(tree.schema, statistics, cost)
        except ParameterError as error:
            raise ValidationError({"cost": str(error)}) from error
        try:
            least = least_of(request.data.get("least", COLUMNS))
        except ParameterError as error:
            raise ValidationError(error.errors) from error
        source = cost_source(source, cost)
        flipper = Flipper(tree, statistics, allowed, seconds=SECONDS, least=least)
        reasons = ModelReasons(model, statistics, seconds=SECONDS)
        explanations = [explain_row(flipper, row, i, wanted_class) for i, row in enumerate(parsed.matrix)]
        for explanation, row in zip(explanations, parsed.matrix, strict=True):
            explanation["reasons"] = None if explanation["leaf"] is None else reasons.record(row)
        return Response(
            {
                "model": str(model.pk),
                "name": model.family.name,
                "version": model.version,
                "measured_on": source,
                "least": least,
                "explanations": explanations,
                "notes": [*(str(note) for note in parsed.notes), *parsed.odd.notes],
            }
            | retired_member(model),
            headers=retired_headers(model),
        )


def may_see_rows(user: Any, model: TreeModel) -> bool:
    """Return whether the user may see the training rows: only the owner and administrators."""
    return access.may_see_rows(user, model)


def _costs(body: Any) -> dict[str, Any]:
    """Return the cost of a change by 1 for each column. Raises ValidationError if it is not an object."""
    cost = body.get("cost", {})
    if not isinstance(cost, dict):
        raise ValidationError(
            {"cost": "This is not an object. Send one member per column: column → what a change of 1 costs."}
        )
    return cost


def _parse_body(
    body: Any, tree: Tree, marks: Mapping[str, Any]
) -> tuple[list[Any], tuple[Permission, ...], int | None]:
    """Return rows, permissions and wanted class (None for any other) of a body.

    `marks` apply to columns that the body does not name. Raises ParseError, ValidationError, which names the member,
    and BodyTooLarge.
    """
    if not isinstance(body, dict):
        raise ParseError('The body must be an object with the member "rows": {"rows": [{"column": value}]}.')
    if unknown := set(body) - MEMBERS:
        words = 'The body has no such member. Its members are "rows", "change", "cost", "least" and "wanted".'
        raise ValidationError({sorted(unknown)[0][:60]: words})
    rows = rows_of({"rows": body.get("rows")})
    if len(rows) > MAX_ROWS:
        raise BodyTooLarge(
            f"{len(rows):,} rows are too many to explain; {MAX_ROWS} is the limit of one call. Send them in several calls."
        )
    change = body.get("change", {})
    wanted_class = body.get("wanted")
    if not isinstance(change, dict):
        words = "This is not an object. Send one member per column: column → free, up, down, whole, fill or never."
        raise ValidationError({"change": words})
    if wanted_class is not None and wanted_class not in tree.classes:
        words = f"'{str(wanted_class)[:60]}' is not a class of the model. Its classes are {', '.join(tree.classes)}."
        raise ValidationError({"wanted": words})
    try:
        allowed = permissions(tree.schema, {**marks, **change})
    except ParameterError as error:
        raise ValidationError({"change": str(error)}) from error
    return rows, allowed, None if wanted_class is None else tree.classes.index(wanted_class)
