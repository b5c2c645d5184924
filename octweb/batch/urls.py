"""Pages of predictions of files."""

from django.urls import path

from octweb.batch import views

app_name = "batch"
urlpatterns = [
    path("", views.job_list, name="list"),
    path("new/", views.new, name="new"),
    path("<uuid:pk>/", views.detail, name="detail"),
    path("<uuid:pk>/live/", views.live, name="live"),
    path("<uuid:pk>/result/", views.result, name="result"),
    path("<uuid:pk>/cancel/", views.cancel, name="cancel"),
]
