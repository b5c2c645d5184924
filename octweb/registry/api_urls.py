"""URLs of the API of models, below /api/v1/."""

from django.urls import path

from octweb.registry.api import comparison_figures, explain, predict, quality_figures, served_when, tree_figures, views

urlpatterns = [
    path("models/", views.ModelList.as_view(), name="api-models"),
    path("models/<uuid:pk>/", views.ModelDetail.as_view(), name="api-model"),
    path("models/<uuid:pk>/download/", views.ModelDownload.as_view(), name="api-model-download"),
    path("models/<uuid:pk>/shares/", views.ModelShares.as_view(), name="api-model-shares"),
    path("models/<uuid:pk>/publish/", views.ModelPublish.as_view(), name="api-model-publish"),
    path("models/<uuid:pk>/review/", views.ModelReview.as_view(), name="api-model-review"),
    path("models/<uuid:pk>/prune/", views.ModelPrune.as_view(), name="api-model-prune"),
    path("models/<uuid:pk>/predict/", predict.ModelPredict.as_view(), name="api-model-predict"),
    path("models/<uuid:pk>/explain/", explain.ModelExplain.as_view(), name="api-model-explain"),
    path("models/<slug:name>/on/", served_when.ServedWhen.as_view(), name="api-model-served-when"),
    path("models/figures/compare/", comparison_figures.CompareFigure.as_view(), name="api-compare-figure"),
    path("models/<uuid:pk>/figures/reach/", comparison_figures.ReachFigure.as_view(), name="api-model-reach-figure"),
    path("models/<uuid:pk>/figures/tree/", tree_figures.TreeFigure.as_view(), name="api-model-tree-figure"),
    path("models/<uuid:pk>/figures/tree-map/", tree_figures.TreeMap.as_view(), name="api-model-tree-map"),
    path(
        "models/<uuid:pk>/figures/nodes/<int:node>/thresholds/",
        quality_figures.ThresholdFigure.as_view(),
        name="api-model-threshold-figure",
    ),
    path(
        "models/<uuid:pk>/figures/calibration/",
        quality_figures.CalibrationFigure.as_view(),
        name="api-model-calibration-figure",
    ),
    path("models/<uuid:pk>/figures/roc/", quality_figures.RocFigure.as_view(), name="api-model-roc-figure"),
    path(
        "models/<uuid:pk>/figures/precision-recall/",
        quality_figures.RecallFigure.as_view(),
        name="api-model-recall-figure",
    ),
    path(
        "models/<uuid:pk>/figures/leaf-frontier/",
        tree_figures.LeafFrontierFigure.as_view(),
        name="api-model-leaf-frontier-figure",
    ),
    path(
        "models/<uuid:pk>/figures/coefficient-frontier/",
        tree_figures.CoefficientFrontierFigure.as_view(),
        name="api-model-coefficient-frontier-figure",
    ),
    path("models/<uuid:pk>/figures/nodes/<int:node>/", tree_figures.NodeFigure.as_view(), name="api-model-node-figure"),
]
