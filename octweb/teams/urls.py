"""URLs of the pages of teams."""

from django.urls import path

from octweb.teams import views

app_name = "teams"
urlpatterns = [
    path("teams/", views.team_list, name="list"),
    path("teams/<uuid:pk>/", views.team_detail, name="detail"),
    path("teams/of/<slug:kind>/<uuid:pk>/", views.belongs_to, name="of"),
]
