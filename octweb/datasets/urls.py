"""URLs of the pages of data sets."""

from django.urls import path

from octweb.datasets import preview_views, views

app_name = "datasets"
urlpatterns = [
    path("", views.dataset_list, name="list"),
    path("new/", preview_views.dataset_new, name="new"),
    path("samples/<slug:slug>/", preview_views.dataset_sample, name="sample"),
    path("uploads/<uuid:pk>/", preview_views.dataset_preview, name="preview"),
    path("uploads/<uuid:pk>/discard/", preview_views.upload_discard, name="discard"),
    path("<uuid:pk>/", views.dataset_detail, name="detail"),
    path("<uuid:pk>/version/", views.dataset_version, name="version"),
    path("<uuid:pk>/counts/", views.dataset_counts, name="counts"),
    path("<uuid:pk>/edit/", views.dataset_edit, name="edit"),
]
