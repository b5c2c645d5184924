"""URLs of the data set API, below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from octweb.datasets.api import DatasetViewSet

router = SimpleRouter()
router.register("datasets", DatasetViewSet, basename="dataset")

urlpatterns = [path("", include(router.urls))]
