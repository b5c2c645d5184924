"""Pages of models."""

from django.urls import path

from octweb.registry import bringing_views, compare_views, pruning_views, review, served_when_views, views
from octweb.registry.workspace import views as workspace

app_name = "registry"
urlpatterns = [
    path("", views.model_list, name="list"),
    path("bring/", bringing_views.model_bring, name="bring"),
    path("compare/", compare_views.model_compare, name="compare"),
    path("compare/rows.csv", compare_views.compare_rows, name="compare-rows"),
    path("<uuid:pk>/", workspace.detail, name="detail"),
    path("<uuid:pk>/node/", workspace.node, name="node"),
    path("<uuid:pk>/rows/", workspace.rows, name="rows"),
    path("<uuid:pk>/rows.csv", workspace.rows_csv, name="rows-csv"),
    path("<uuid:pk>/groups/", workspace.subgroups, name="groups"),
    path("<uuid:pk>/costs/", workspace.mistake_costs, name="costs"),
    path("<uuid:pk>/prune/", pruning_views.prune_page, name="prune"),
    path("<uuid:pk>/try/", workspace.trying, name="try"),
    path("<uuid:pk>/download/<slug:name>/", views.model_download, name="download"),
    path("review/", review.review_list, name="waiting"),
    path("<slug:name>/on/", served_when_views.served_when, name="served-when"),
    path("<uuid:pk>/review/", review.review_page, name="review-page"),
    path("<uuid:pk>/review/<slug:verb>/", review.review_step, name="review"),
    path("<uuid:pk>/share/", review.share_with, name="share"),
    path("<uuid:pk>/publish/", review.review_publish, name="publish"),
    path("<uuid:pk>/stop-serving/", review.review_stop_serving, name="stop-serving"),
]
