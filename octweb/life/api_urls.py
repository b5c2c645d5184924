"""URLs of the API of models in use, below /api/v1/."""

from django.urls import path

from octweb.life import api

urlpatterns = [
    path("models/<uuid:pk>/life/", api.ModelLife.as_view(), name="api-model-life"),
    path("models/<uuid:pk>/life/limits/", api.ModelLimits.as_view(), name="api-model-life-limits"),
    path(
        "models/<uuid:pk>/life/alarms/<int:alarm>/close/",
        api.ModelAlarmClose.as_view(),
        name="api-model-life-alarm-close",
    ),
    path("models/<uuid:pk>/watch/", api.ModelWatch.as_view(), name="api-model-watch"),
    path("models/<uuid:pk>/figures/life/leaves/", api.LeavesFigure.as_view(), name="api-model-life-leaves-figure"),
    path(
        "models/<uuid:pk>/figures/life/evidence/", api.EvidenceFigure.as_view(), name="api-model-life-evidence-figure"
    ),
]
