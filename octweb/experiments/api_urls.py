"""URLs of the experiment API, below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from octweb.experiments.api import ExperimentViewSet

router = SimpleRouter()
router.register("experiments", ExperimentViewSet, basename="experiment")

urlpatterns = [path("", include(router.urls))]
