"""URLs of the pages of workbenches."""

from django.urls import path

from octweb.core.moved import moved_to
from octweb.workbench import views

app_name = "workbench"
urlpatterns = [
    path("", moved_to("drafts"), name="list"),
    path("new/", views.bench_new, name="new"),
    path("of-model/", views.bench_of_model, name="of-model"),
    path("<uuid:pk>/", views.bench_detail, name="detail"),
    path("<uuid:pk>/live/", views.bench_live, name="live"),
    path("<uuid:pk>/edit/", views.bench_edit, name="edit"),
    path("<uuid:pk>/move/", views.bench_move, name="move"),
    path("<uuid:pk>/prices/", views.bench_prices, name="prices"),
    path("<uuid:pk>/unseen/", views.bench_unseen, name="unseen"),
    path("<uuid:pk>/save/", views.bench_save, name="save"),
    path("<uuid:pk>/good-trees/", views.explorer, name="explorer"),
]
