"""URLs of the API of recorded decisions, below /api/v1/."""

from django.urls import path

from octweb.decisions import api, keeping

urlpatterns = [
    path("models/<uuid:pk>/decisions/", api.ModelDecisions.as_view(), name="api-model-decisions"),
    path("models/<uuid:pk>/recording/", keeping.ModelRecording.as_view(), name="api-model-recording"),
    path("decisions/<uuid:decision>/", api.Decision.as_view(), name="api-decision"),
    path("decisions/<uuid:decision>/letter/", api.DecisionLetter.as_view(), name="api-decision-letter"),
    path("decisions/<uuid:decision>/outcome/", api.DecisionOutcome.as_view(), name="api-decision-outcome"),
    path("decisions/<uuid:decision>/override/", api.DecisionOverride.as_view(), name="api-decision-override"),
    path("decisions/<uuid:decision>/objection/", api.DecisionObjection.as_view(), name="api-decision-objection"),
    path("decisions/<uuid:decision>/erase/", api.DecisionErase.as_view(), name="api-decision-erase"),
    path("subjects/erase/", api.SubjectErase.as_view(), name="api-subjects-erase"),
    path("outcomes/", api.Outcomes.as_view(), name="api-outcomes"),
    path("overrides/", api.Overrides.as_view(), name="api-overrides"),
    path("objections/", api.Objections.as_view(), name="api-objections"),
]
