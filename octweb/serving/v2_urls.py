"""URLs of the Open Inference Protocol, below /v2."""

from django.urls import path, re_path

from octweb.serving import v2

MODEL = "/models/<str:name>"
VERSION = f"{MODEL}/versions/<str:version>"

urlpatterns = [
    re_path(r"^/?$", v2.Server.as_view(), name="v2"),
    path("/health/live", v2.live, name="v2-live"),
    path("/health/ready", v2.ready, name="v2-ready"),
    path("/repository/index", v2.RepositoryIndex.as_view(), name="v2-index"),
    path(MODEL, v2.V2Model.as_view(), name="v2-model"),
    path(f"{MODEL}/ready", v2.ModelReady.as_view(), name="v2-model-ready"),
    path(f"{MODEL}/config", v2.Config.as_view(), name="v2-model-config"),
    path(f"{MODEL}/infer", v2.Infer.as_view(), name="v2-infer"),
    path(VERSION, v2.V2Model.as_view(), name="v2-version"),
    path(f"{VERSION}/ready", v2.ModelReady.as_view(), name="v2-version-ready"),
    path(f"{VERSION}/config", v2.Config.as_view(), name="v2-version-config"),
    path(f"{VERSION}/infer", v2.Infer.as_view(), name="v2-version-infer"),
]
