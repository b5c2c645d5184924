"""URLs of the API's index and of tokens, below /api/v1/."""

from django.urls import path

from octweb.serving import api, index

urlpatterns = [
    path("", index.Index.as_view(), name="api-index"),
    path("tokens/", api.TokenList.as_view(), name="api-tokens"),
    path("tokens/<slug:key>/", api.TokenDetail.as_view(), name="api-token"),
    path("sign-out-everywhere/", api.SignOutEverywhere.as_view(), name="api-sign-out-everywhere"),
]
