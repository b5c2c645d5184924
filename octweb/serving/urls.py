"""URLs of the pages about the API."""

from django.urls import path

from octweb.serving import views

app_name = "serving"
urlpatterns = [
    path("", views.guide, name="guide"),
    path("sign-out-everywhere/", views.revoke_all, name="revoke-all"),
    path("tokens/<slug:key>/revoke/", views.revoke, name="revoke"),
]
