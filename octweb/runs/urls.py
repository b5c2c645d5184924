"""URLs of the pages of runs."""

from django.urls import path

from octweb.core.moved import moved_to
from octweb.runs import new_run, views

app_name = "runs"
urlpatterns = [
    path("", moved_to("searches"), name="list"),
    path("new/", new_run.run_new, name="new"),
    path("new/advice/", new_run.run_advice, name="advice"),
    path("<uuid:pk>/", views.run_detail, name="detail"),
    path("<uuid:pk>/live/", views.run_live, name="live"),
    path("<uuid:pk>/chart/", views.run_chart, name="chart"),
    path("<uuid:pk>/trees/<int:line>/", views.run_tree, name="tree"),
    path("<uuid:pk>/cancel/", views.run_cancel, name="cancel"),
    path("<uuid:pk>/again/", views.run_again, name="again"),
    path("<uuid:pk>/on/<uuid:other>/", views.run_on, name="on"),
    path("<uuid:pk>/reachable/", views.run_reachable, name="reachable"),
]
