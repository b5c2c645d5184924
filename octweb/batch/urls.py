"""URLs of the pages of batch predictions."""

from django.urls import path

from octweb.batch import views
from octweb.core.moved import moved_to

app_name = "batch"
urlpatterns = [
    path("", moved_to("decisions"), name="list"),
    path("new/", views.new, name="new"),
    path("<uuid:pk>/", views.detail, name="detail"),
    path("<uuid:pk>/live/", views.live, name="live"),
    path("<uuid:pk>/result/", views.result, name="result"),
    path("<uuid:pk>/cancel/", views.cancel, name="cancel"),
]
