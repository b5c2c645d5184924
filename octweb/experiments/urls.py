"""URLs of the pages of experiments."""

from django.urls import path

from octweb.core.moved import moved_to
from octweb.experiments import views

app_name = "experiments"
urlpatterns = [
    path("", moved_to("searches"), name="list"),
    path("new/", views.experiment_new, name="new"),
    path("<uuid:pk>/", views.experiment_detail, name="detail"),
    path("<uuid:pk>/live/", views.experiment_live, name="live"),
    path("<uuid:pk>/chart/", views.experiment_chart, name="chart"),
    path("<uuid:pk>/stop/", views.experiment_stop, name="stop"),
    path("<uuid:pk>/go-on/", views.experiment_go_on, name="go-on"),
    path("candidates/<uuid:pk>/open/", views.candidate_open, name="open"),
    path("candidates/<uuid:pk>/retrain/", views.candidate_retrain, name="retrain"),
]
