"""API of models, below /api/v1/."""

from django.urls import path

from octweb.registry import (
    api,
    compare_pictures,
    explaining,
    pictures,
    pruning_views,
    quality_pictures,
    served_when_views,
)

urlpatterns = [
    path("models/", api.ModelList.as_view(), name="api-models"),
    path("models/<uuid:pk>/", api.ModelDetail.as_view(), name="api-model"),
    path("models/<uuid:pk>/download/", api.ModelDownload.as_view(), name="api-model-download"),
    path("models/<uuid:pk>/shares/", api.ModelShares.as_view(), name="api-model-shares"),
    path("models/<uuid:pk>/publish/", api.ModelPublish.as_view(), name="api-model-publish"),
    path("models/<uuid:pk>/review/", api.ModelReview.as_view(), name="api-model-review"),
    path("models/<uuid:pk>/prune/", pruning_views.ModelPrune.as_view(), name="api-model-prune"),
    path("models/<uuid:pk>/predict/", api.ModelPredict.as_view(), name="api-model-predict"),
    path("models/<uuid:pk>/explain/", explaining.ModelExplain.as_view(), name="api-model-explain"),
    path("models/<slug:name>/on/", served_when_views.ServedWhen.as_view(), name="api-model-served-when"),
    path("models/figures/compare/", compare_pictures.CompareFigure.as_view(), name="api-compare-figure"),
    path("models/<uuid:pk>/figures/reach/", compare_pictures.ReachFigure.as_view(), name="api-model-reach-figure"),
    path("models/<uuid:pk>/figures/tree/", pictures.TreeFigure.as_view(), name="api-model-tree-figure"),
    path("models/<uuid:pk>/figures/tree-map/", pictures.TreeMap.as_view(), name="api-model-tree-map"),
    path(
        "models/<uuid:pk>/figures/nodes/<int:node>/thresholds/",
        quality_pictures.ThresholdFigure.as_view(),
        name="api-model-threshold-figure",
    ),
    path(
        "models/<uuid:pk>/figures/calibration/",
        quality_pictures.CalibrationFigure.as_view(),
        name="api-model-calibration-figure",
    ),
    path("models/<uuid:pk>/figures/roc/", quality_pictures.RocFigure.as_view(), name="api-model-roc-figure"),
    path(
        "models/<uuid:pk>/figures/precision-recall/",
        quality_pictures.RecallFigure.as_view(),
        name="api-model-recall-figure",
    ),
    path(
        "models/<uuid:pk>/figures/leaf-frontier/",
        pictures.LeafFrontierFigure.as_view(),
        name="api-model-leaf-frontier-figure",
    ),
    path(
        "models/<uuid:pk>/figures/coefficient-frontier/",
        pictures.CoefficientFrontierFigure.as_view(),
        name="api-model-coefficient-frontier-figure",
    ),
    path("models/<uuid:pk>/figures/nodes/<int:node>/", pictures.NodeFigure.as_view(), name="api-model-node-figure"),
]
