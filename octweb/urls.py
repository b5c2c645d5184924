"""URLs of octweb. Each app lists its pages in `urls` and its API in `api_urls`."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

from octweb.batch.views import job_list
from octweb.core import sign_in
from octweb.core import views as core
from octweb.core.parameters import LockedGenerator
from octweb.decide.public import public_page
from octweb.dossier.views import public_key
from octweb.home import trash
from octweb.home.administration import administration
from octweb.home.documentation import documentation
from octweb.home.example import example_tree
from octweb.home.glossary import glossary_page
from octweb.home.search import search_page
from octweb.home.start import start_sample
from octweb.home.views import home
from octweb.jobs import collector as service_collector  # noqa: F401  (registers a collector for /metrics)
from octweb.life import collector  # noqa: F401  (registers a collector for /metrics)
from octweb.notify.views import wishes
from octweb.runs.views import run_list
from octweb.serving import (
    invocations,
    passwords,
    reference,
    schema,  # noqa: F401  (how tokens appear in the OpenAPI document)
)
from octweb.workbench.views import bench_list

admin.autodiscover()
admin.site.site_header = admin.site.site_title = "octweb administration"
admin.site.index_title = "Review and accounts"

urlpatterns = [
    path("", home, name="home"),
    path("demo/", include("octweb.demo.urls")),
    path("start/<slug:slug>/", start_sample, name="start"),
    path("notifications/", wishes, name="notify"),
    path("deleted/", trash.deleted, name="deleted"),
    path("deleted/<slug:kind>/<uuid:pk>/", trash.undelete, name="undelete"),
    path("delete/<slug:kind>/<uuid:pk>/", trash.delete, name="delete"),
    path("administration/", administration, name="administration"),
    path("search/", search_page, name="search"),
    path("words/", glossary_page, name="glossary"),
    path("docs/", documentation, name="documentation"),
    path("docs/<path:page>", documentation, name="documentation-page"),
    path("datasets/", include("octweb.datasets.urls")),
    path("sources/", include("octweb.sources.urls")),
    path("", include("octweb.privacy.urls")),
    path("", include("octweb.teams.urls")),
    path("models/searches/", run_list, name="searches"),
    path("models/drafts/", bench_list, name="drafts"),
    path("decisions/", job_list, name="decisions"),
    path("runs/", include("octweb.runs.urls")),
    path("experiments/", include("octweb.experiments.urls")),
    path("workbenches/", include("octweb.workbench.urls")),
    path("models/", include("octweb.registry.urls")),
    path("models/", include("octweb.checking.urls")),
    path("models/", include("octweb.runs.size_urls")),
    path("models/", include("octweb.life.urls")),
    path("models/", include("octweb.oversight.urls")),
    path("models/", include("octweb.decide.urls")),
    path("models/", include("octweb.dossier.urls")),
    path("models/", include("octweb.decisions.urls")),
    path("models/", include("octweb.challengers.urls")),
    path("dossier-key/", public_key, name="dossier-key"),
    path("public/<uuid:key>/", public_page, name="public-page"),
    path("predictions/", include("octweb.batch.urls")),
    path("api/", include("octweb.serving.urls")),
    path("api/schema/", SpectacularAPIView.as_view(generator_class=LockedGenerator), name="schema"),
    path("api/docs/", reference.reference, name="api-docs"),
    path("api/v1/", include("octweb.datasets.api_urls")),
    path("api/v1/", include("octweb.sources.api_urls")),
    path("api/v1/", include("octweb.privacy.api_urls")),
    path("api/v1/", include("octweb.teams.api_urls")),
    path("api/v1/", include("octweb.runs.api_urls")),
    path("api/v1/", include("octweb.experiments.api_urls")),
    path("api/v1/", include("octweb.workbench.api_urls")),
    path("api/v1/", include("octweb.registry.api_urls")),
    path("api/v1/", include("octweb.checking.api_urls")),
    path("api/v1/", include("octweb.life.api_urls")),
    path("api/v1/", include("octweb.oversight.api_urls")),
    path("api/v1/", include("octweb.decide.api_urls")),
    path("api/v1/", include("octweb.dossier.api_urls")),
    path("api/v1/", include("octweb.decisions.api_urls")),
    path("api/v1/", include("octweb.challengers.api_urls")),
    path("api/v1/", include("octweb.serving.api_urls")),
    path("api/v1/", include("octweb.batch.api_urls")),
    path("v2", include("octweb.serving.v2_urls")),
    path("invocations", invocations.Invocations.as_view(), name="invocations"),
    path("ping", invocations.Ping.as_view(), name="ping"),
    path("version", invocations.version, name="version"),
    path("accounts/login/", sign_in.SignIn.as_view(extra_context={"live": example_tree}), name="login"),
    path("accounts/logout/", sign_in.SignOut.as_view(), name="logout"),
    path("accounts/sign-on/", sign_in.begin, name="sign-on"),
    path("accounts/sign-on/answer/", sign_in.answer, name="sign-on-answer"),
    path("accounts/password/", passwords.PasswordChange.as_view(), name="password_change"),
    path("accounts/password/done/", auth.PasswordChangeDoneView.as_view(), name="password_change_done"),
    path("accounts/reset/", passwords.request_reset, name="password_reset"),
    path("accounts/reset/sent/", auth.PasswordResetDoneView.as_view(), name="password_reset_done"),
    path("accounts/reset/<uidb64>/<token>/", passwords.Reset.as_view(), name="password_reset_confirm"),
    path("accounts/reset/done/", auth.PasswordResetCompleteView.as_view(), name="password_reset_complete"),
    path("admin/", admin.site.urls),
    path("favicon.ico", core.icon),
    path("metrics", core.metrics_page, name="metrics"),
    path("healthz", core.healthz, name="healthz"),
    path("readyz", core.readyz, name="readyz"),
]

handler400 = "octweb.core.views.bad_request"
handler403 = "octweb.core.views.forbidden"
handler404 = "octweb.core.views.not_found"
handler500 = "octweb.core.views.server_error"
