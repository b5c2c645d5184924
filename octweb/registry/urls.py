"""URLs of the pages of models."""

from django.urls import path

from octweb.registry.comparing import views as comparing
from octweb.registry.lifecycle import importing_views, pruning_views, serving_history_views
from octweb.registry.page import list_views
from octweb.registry.page import views as page
from octweb.registry.review import views as review

app_name = "registry"
urlpatterns = [
    path("", list_views.model_list, name="list"),
    path("bring/", importing_views.model_bring, name="bring"),
    path("compare/", comparing.model_compare, name="compare"),
    path("compare/rows.csv", comparing.compare_rows, name="compare-rows"),
    path("<uuid:pk>/", page.detail, name="detail"),
    path("<uuid:pk>/node/", page.node, name="node"),
    path("<uuid:pk>/rows/", page.rows, name="rows"),
    path("<uuid:pk>/rows.csv", page.rows_csv, name="rows-csv"),
    path("<uuid:pk>/groups/", page.subgroups, name="groups"),
    path("<uuid:pk>/costs/", page.mistake_costs, name="costs"),
    path("<uuid:pk>/prune/", pruning_views.prune_page, name="prune"),
    path("<uuid:pk>/try/", page.trying, name="try"),
    path("<uuid:pk>/download/<slug:name>/", list_views.model_download, name="download"),
    path("review/", review.review_list, name="waiting"),
    path("<slug:name>/on/", serving_history_views.served_when, name="served-when"),
    path("<uuid:pk>/review/", review.review_page, name="review-page"),
    path("<uuid:pk>/review/<slug:verb>/", review.review_step, name="review"),
    path("<uuid:pk>/share/", review.share_with, name="share"),
    path("<uuid:pk>/publish/", review.review_publish, name="publish"),
    path("<uuid:pk>/stop-serving/", review.review_stop_serving, name="stop-serving"),
]
