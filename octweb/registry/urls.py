"""Pages of models."""

from django.urls import path

from octweb.registry import review, views

app_name = "registry"
urlpatterns = [
    path("", views.model_list, name="list"),
    path("compare/", views.model_compare, name="compare"),
    path("compare/figure/", views.model_frontier, name="frontier"),
    path("<uuid:pk>/", views.model_detail, name="detail"),
    path("<uuid:pk>/download/<slug:name>/", views.model_download, name="download"),
    path("review/", review.review_list, name="waiting"),
    path("<uuid:pk>/review/", review.review_page, name="review-page"),
    path("<uuid:pk>/review/<slug:verb>/", review.review_step, name="review"),
    path("<uuid:pk>/publish/", review.review_publish, name="publish"),
]
