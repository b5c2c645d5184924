"""URLs of the pages of personal data."""

from django.urls import path

from octweb.privacy import views

app_name = "privacy"
urlpatterns = [
    path("privacy/", views.privacy, name="holdings"),
    path("datasets/<uuid:pk>/erase/", views.erase_rows, name="erase-rows"),
]
