"""URLs of the demo."""

from django.urls import path

from octweb.demo import views

app_name = "demo"
urlpatterns = [
    path("begin/", views.begin, name="begin"),
    path("end/", views.end, name="end"),
]
