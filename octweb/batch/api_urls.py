"""URLs of the batch prediction API, below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from octweb.batch.api import BatchPredictionViewSet

router = SimpleRouter()
router.register("predictions", BatchPredictionViewSet, basename="batch")

urlpatterns = [path("", include(router.urls))]
