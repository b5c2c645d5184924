"""Bodies of prediction calls."""

from __future__ import annotations

from rest_framework import serializers

from octweb.registry.prediction.retired import RETIRED_HELP


class PredictionSerializer(serializers.Serializer):
    """The prediction for one row."""

    label = serializers.CharField(allow_blank=True)
    probabilities = serializers.DictField(child=serializers.FloatField())
    leaf = serializers.IntegerField()
    path = serializers.ListField(child=serializers.CharField(), required=False, help_text="with ?explain=true")
    missing = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="empty columns that the path asks, where there are some",
    )
    unseen_missing = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="those of them whose side for empty cells no training row took",
    )
    out_of_range = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="columns that the tree asks and whose value lies outside the training range",
    )
    decision = serializers.UUIDField(required=False, help_text="id of its record, where records are kept")


class AnswerCertificateSerializer(serializers.Serializer):
    """The claim about the tree that answers."""

    guarantee = serializers.CharField()
    status = serializers.CharField()
    gap = serializers.FloatField(allow_null=True)
    proved_optimal = serializers.BooleanField(help_text="false for a tree with wishes")
    wishes = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="in words, where there are some"
    )
    price_rows = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="what all wishes together cost, in rows; null: not known, or rows have weights or answers costs",
    )


class PredictionsSerializer(serializers.Serializer):
    """The answers of predict."""

    model = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    retired = serializers.CharField(required=False, help_text=RETIRED_HELP)
    certificate = AnswerCertificateSerializer()
    predictions = PredictionSerializer(many=True, required=False, help_text="by row")
    columns = serializers.DictField(
        child=serializers.ListField(), required=False, help_text="instead of predictions, if columns were sent"
    )
    notes = serializers.ListField(child=serializers.CharField(), help_text="how unusual values were treated")
    proposals = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="readings under which columns of 20 rows or more would fit the training better, where there are some",
    )


class RowsSerializer(serializers.Serializer):
    """Rows to predict: either `rows`, each an object of column → value, or `columns`, column → list of values."""

    rows = serializers.ListField(
        child=serializers.DictField(child=serializers.JSONField(allow_null=True)),
        required=False,
        help_text="columns and values",
    )
    columns = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField(allow_null=True)),
        required=False,
        help_text="in place of rows",
    )
