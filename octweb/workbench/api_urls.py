"""URLs of the API of workbenches, below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from octweb.workbench.api import WorkbenchViewSet

router = SimpleRouter()
router.register("workbenches", WorkbenchViewSet, basename="workbench")

urlpatterns = [path("", include(router.urls))]
