"""URLs of the API of runs, below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from octweb.runs.api import MethodsView, RunViewSet

router = SimpleRouter()
router.register("runs", RunViewSet, basename="run")

urlpatterns = [path("methods/", MethodsView.as_view(), name="api-methods"), path("", include(router.urls))]
