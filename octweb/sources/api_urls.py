"""URLs of the API of sources, below /api/v1/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from octweb.sources.api import CountViewSet, SourceList, SourceSample, SourceTables

router = SimpleRouter()
router.register("counts", CountViewSet, basename="count")

urlpatterns = [
    path("sources/", SourceList.as_view(), name="api-sources"),
    path("sources/<slug:name>/tables/", SourceTables.as_view(), name="api-source-tables"),
    path("sources/<slug:name>/sample/", SourceSample.as_view(), name="api-source-sample"),
    path("", include(router.urls)),
]
