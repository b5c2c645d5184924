"""URLs of the pages of oversight, below those of models."""

from django.urls import path

from octweb.oversight import views

app_name = "oversight"
urlpatterns = [
    path("inventory/", views.inventory, name="inventory"),
    path("<uuid:pk>/oversight/", views.state, name="state"),
    path("<uuid:pk>/oversight/review/", views.review, name="review"),
]
