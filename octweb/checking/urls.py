"""URLs of checks and comparisons, below those of models."""

from django.urls import path

from octweb.checking import comparing_views, views

app_name = "checking"
urlpatterns = [
    path("<uuid:pk>/check/", views.panel, name="panel"),
    path("<uuid:pk>/check/start/", views.start, name="start"),
    path("<uuid:pk>/check/files/", views.bundle, name="bundle"),
    path("<uuid:pk>/comparison/", comparing_views.panel, name="comparison"),
    path("<uuid:pk>/comparison/start/", comparing_views.start, name="compare"),
    path("<uuid:pk>/comparison/stop/", comparing_views.stop, name="stop-comparing"),
]
