"""URLs of the pages of sources."""

from django.urls import path

from octweb.sources import views

app_name = "sources"
urlpatterns = [
    path("", views.source_list, name="list"),
    path("samples/<uuid:pk>/", views.sample_preview, name="preview"),
    path("counts/<uuid:pk>/", views.count_detail, name="count"),
    path("counts/<uuid:pk>/live/", views.count_live, name="live"),
    path("counts/<uuid:pk>/cancel/", views.count_cancel, name="cancel"),
    path("<slug:name>/", views.source_rows, name="rows"),
]
