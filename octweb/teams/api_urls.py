"""URLs of the API of teams, below /api/v1/."""

from django.urls import path

from octweb.teams import api

urlpatterns = [
    path("teams/", api.TeamList.as_view(), name="api-teams"),
    path("teams/<uuid:pk>/", api.TeamDetail.as_view(), name="api-team"),
    path("teams/<uuid:pk>/members/", api.TeamMembers.as_view(), name="api-team-members"),
    path("datasets/<uuid:pk>/team/", api.DatasetTeam.as_view(), name="api-dataset-team"),
    path("models/<uuid:pk>/team/", api.ModelTeam.as_view(), name="api-model-team"),
]
