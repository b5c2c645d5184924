"""URLs of the sizes of a model, below those of models."""

from django.urls import path

from octweb.runs import views

app_name = "sizes"
urlpatterns = [path("<uuid:pk>/sizes/", views.model_sizes, name="sizes")]
