"""Addresses of checks, below those of models."""

from django.urls import path

from octweb.checking import views

app_name = "checking"
urlpatterns = [
    path("<uuid:pk>/check/", views.panel, name="panel"),
    path("<uuid:pk>/check/start/", views.start, name="start"),
    path("<uuid:pk>/check/files/", views.bundle, name="bundle"),
]
