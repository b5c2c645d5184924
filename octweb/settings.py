"""Settings of octweb, read from the environment only. docs/settings.md lists the variables."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url

from octweb import places
from octweb.core.logs import log_settings
from octweb.environment import (
    boolean,
    choice,
    integer,
    one_of,
    refuse_incomplete_provider,
    refuse_missing,
    refuse_old,
    refuse_weak_proxy_secret,
    secret,
    secret_key,
    sources_setting,
    split_groups,
    store_settings,
    text,
    words_setting,
)

BASE_DIR = places.ROOT  # folder of the packages octweb and trainer
SHIPPED = places.FILES  # folder of templates, static files, checker and docs/proof-format.md
COMMAND = places.COMMAND  # the command line of each octweb process begins with this
DATA_DIR = Path(text("OCTWEB_DATA_DIR", str(places.data()))).resolve()
MEDIA_ROOT = DATA_DIR / "files"
# The code may be read-only, so compiled kernels have a folder of their own. Numba reads this when it is first imported.
os.environ.setdefault("NUMBA_CACHE_DIR", str(places.kernels(DATA_DIR)))
DOCS_DIR = Path(text("OCTWEB_DOCS_DIR", str(places.DOCUMENTATION)))  # folder of the site that `make docs` builds
FILES = text("OCTWEB_FILES", "")  # where uploads, tables and predictions are stored: a folder, or s3://bucket/prefix

DEBUG = boolean("OCTWEB_DEBUG", False)
# visitors get accounts for one day, and the default limits are small (docs/demo.md)
DEMO = boolean("OCTWEB_DEMO", False)
# set if octweb is served behind TLS: cookies are then secure, and HSTS and redirects are on
HTTPS = boolean("OCTWEB_HTTPS", False)
SECRET_KEY = secret_key(DATA_DIR)
ALLOWED_HOSTS = words_setting("OCTWEB_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# number of proxies before the web server; each one adds an address to X-Forwarded-For
PROXIES = integer("OCTWEB_PROXIES", 0)
FORCE_SCRIPT_NAME = text("SCRIPT_NAME", "") or None  # prefix of octweb in URLs, the same as for gunicorn
CSRF_TRUSTED_ORIGINS = words_setting("OCTWEB_TRUSTED_ORIGINS", "")

# Each of the following limits is named in the error that it causes.
MAX_UPLOAD_BYTES = integer("OCTWEB_MAX_UPLOAD_MB", 2 if DEMO else 200) * 1_000_000
# Size of a .gz or Parquet file after unpacking.
MAX_UNPACKED_BYTES = integer("OCTWEB_MAX_UNPACKED_MB", 16 if DEMO else 400) * 1_000_000
MAX_ROWS = integer("OCTWEB_MAX_ROWS", 5_000 if DEMO else 2_000_000)
MAX_COLUMNS = integer("OCTWEB_MAX_COLUMNS", 100 if DEMO else 2_000)
# Memory that a child process may use to read one file.
MAX_READING_BYTES = integer("OCTWEB_MAX_READING_MB", 1024 if DEMO else 2048) * 1_000_000
MAX_READING_SECONDS = integer("OCTWEB_MAX_READING_SECONDS", 60 if DEMO else 600)
READERS = integer("OCTWEB_READERS", 2)  # child processes of one host that read files at the same time
# Number of uploads of one web process at the same time, including those that wait for a reader.
MAX_UPLOADS_AT_ONCE = integer("OCTWEB_MAX_UPLOADS_AT_ONCE", 4 if DEMO else 10)
MAX_PREDICT_BYTES = integer("OCTWEB_MAX_PREDICT_MB", 2 if DEMO else 32) * 1_000_000
MAX_PREDICT_ROWS = integer("OCTWEB_MAX_PREDICT_ROWS", 5_000 if DEMO else 100_000)
MAX_QUEUED_RUNS = integer("OCTWEB_MAX_QUEUED_RUNS", 3 if DEMO else 50)  # limit for each user
# by default only on Linux, because some libraries of other systems fail after a fork
FORK_SERVER = boolean("OCTWEB_FORK_SERVER", sys.platform == "linux")
MAX_TRAINING_SECONDS = integer("OCTWEB_MAX_TRAINING_SECONDS", 60 if DEMO else 24 * 3600)
MAX_TRAINING_MB = integer("OCTWEB_MAX_TRAINING_MB", 1_500 if DEMO else 4096)
MAX_TRAINING_THREADS = integer("OCTWEB_MAX_TRAINING_THREADS", 1 if DEMO else os.cpu_count() or 1)
# Time limit of one batch prediction or check.
MAX_BATCH_SECONDS = integer("OCTWEB_MAX_BATCH_SECONDS", 60 if DEMO else 3600)
# Sources whose rows may be counted. Django's debug page hides settings with this word in their names.
SECRET_SOURCES = {} if DEMO else sources_setting("OCTWEB_SOURCES")
MAX_SOURCE_ROWS = integer("OCTWEB_MAX_SOURCE_ROWS", 1_000_000_000)
MAX_COUNT_SECONDS = integer("OCTWEB_MAX_COUNT_SECONDS", 3600)
# results of batch predictions are removed after this time
KEEP_PREDICTIONS_DAYS = integer("OCTWEB_KEEP_PREDICTIONS_DAYS", 7)
MAX_COPIES_BYTES = integer("OCTWEB_MAX_COPIES_MB", 5_000) * 1_000_000  # size of all local copies of files from a bucket
DEMO_VISITORS = integer("OCTWEB_DEMO_VISITORS", 200)  # visitor accounts that one day may create
DEMO_VISITORS_PER_ADDRESS = integer("OCTWEB_DEMO_VISITORS_PER_ADDRESS", 10)
DEMO_ITEMS = integer("OCTWEB_DEMO_ITEMS", 100)  # data sets, runs, models and other objects that one visitor may have
# Whether the owner of a model must not approve it. None: the owner may, unless there are two administrators or more.
FOUR_EYES = boolean("OCTWEB_FOUR_EYES", False) if "OCTWEB_FOUR_EYES" in os.environ else None
TEAM_REVIEW = boolean("OCTWEB_TEAM_REVIEW", False)  # whether reviewers of a team approve its models
APPROVALS = one_of("OCTWEB_APPROVALS", 1, 2)  # number of administrators who must approve a model
ANCHOR_URL = text("OCTWEB_ANCHOR_URL", "")  # where the last signed block of decisions is anchored each day
ANCHOR_KIND = choice("OCTWEB_ANCHOR_KIND", "webhook", "timestamp")  # timestamp: a server as in RFC 3161
WEBHOOK_HOSTS = words_setting("OCTWEB_WEBHOOK_HOSTS", "")  # private hosts to which webhooks may be sent
DOSSIER_KEY = Path(text("OCTWEB_DOSSIER_KEY", str(DATA_DIR / "dossier_key.pem")))  # file of the key that signs dossiers
# time limit of the trainings on bootstraps that a dossier compares; 0 leaves them out
DOSSIER_BOOTSTRAP_SECONDS = integer("OCTWEB_DOSSIER_BOOTSTRAP_SECONDS", 10)
METRICS_TOKEN = secret("OCTWEB_METRICS_TOKEN")  # Prometheus reads /metrics with this bearer token
WATCH = boolean("OCTWEB_WATCH", True)  # workers evaluate the counts of approved models every morning
RECORD = choice("OCTWEB_RECORD", "", "full")  # "full": each answer of every approved model is recorded
# whether records are synced to disk every second or in each call
RECORD_SYNC = choice("OCTWEB_RECORD_SYNC", "second", "call")
# whether a call is refused or answered without a record if its record cannot be written
RECORD_FULL = choice("OCTWEB_RECORD_FULL", "refuse", "answer")
# size of all records that are not yet collected
RECORD_SPOOL_BYTES = integer("OCTWEB_RECORD_SPOOL_MB", 2048) * 1_000_000
RECORD_KEEP_DAYS = integer("OCTWEB_RECORD_KEEP_DAYS", 1826)
ERASURES = Path(text("OCTWEB_ERASURES", str(DATA_DIR / "erasures.jsonl")))  # list of erased decisions
KEEP_LOGINS_DAYS = integer("OCTWEB_KEEP_LOGINS_DAYS", 90)  # records of sign-ins are removed after this time
# tables of clauses (octweb.dossier.clauses) whose unwritten points prevent an approval
REQUIRED_CLAUSES = words_setting("OCTWEB_REQUIRED_CLAUSES", "")
WORKER_LEASE_SECONDS = integer("OCTWEB_WORKER_LEASE_SECONDS", 30)
WORKER_GRACE_SECONDS = integer("OCTWEB_WORKER_GRACE_SECONDS", 10)
# Limits of forms on pages. octweb.core.parsers limits the bodies of API calls, and larger files go to disk.
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
FILE_UPLOAD_PERMISSIONS = 0o600  # Django's default is 0o644, whatever the umask is
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10 * MAX_COLUMNS + 1000  # the preview of an upload has six fields for each column

INSTALLED_APPS = [
    # octweb.urls runs the autodiscovery instead, so that commands such as `train` start a third faster.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "django_htmx",
    "django_tasks",
    "django_tasks_db",
    "drf_spectacular",
    "knox",
    "rest_framework",
    "octweb.core",
    "octweb.demo",
    "octweb.audit",
    "octweb.jobs",
    "octweb.datasets",
    "octweb.sources",
    "octweb.registry",
    "octweb.checking",
    "octweb.decide",
    "octweb.life",
    "octweb.oversight",
    "octweb.dossier",
    "octweb.decisions",
    "octweb.challengers",
    "octweb.runs",
    "octweb.experiments",
    "octweb.notify",
    "octweb.privacy",
    "octweb.teams",
    "octweb.workbench",
    "octweb.serving",
    "octweb.batch",
]

MIDDLEWARE = [
    "octweb.core.request_log.RouteMiddleware",
    "octweb.core.views.HealthMiddleware",
    "octweb.serving.quick.QuickPredictions",  # answers valid prediction calls before any other middleware runs
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "octweb.core.middleware.PrivateMiddleware",
    "octweb.core.middleware.RateLimitMiddleware",
    "octweb.core.middleware.OptionsMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "octweb.core.remote_user.ProxyUserMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "octweb.urls"
WSGI_APPLICATION = "octweb.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [SHIPPED / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "octweb.demo.context.demo",
            ],
            "builtins": ["octweb.core.templatetags.octweb"],
        },
    },
]

database_url = secret("DATABASE_URL")  # not a setting, because Django's debug page would show its password
if database_url:
    DATABASES = {"default": dj_database_url.parse(database_url, conn_max_age=60, conn_health_checks=True)}
else:
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(DATA_DIR / "octweb.sqlite3")}}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # the database must be a file, because tests start real workers on it
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    # With Django's defaults, six writers saw "database is locked". With these options none did.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
elif DATABASES["default"]["ENGINE"].endswith("postgresql"):
    refuse_missing("psycopg", "The PostgreSQL of DATABASE_URL", "postgres")
    # A call waits for a lock as long as it does with SQLite (20 s). Without this limit it would wait for ever.
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("options", "-c lock_timeout=20s")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["default", "beside"]}}

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "octweb.core.remote_user.ProxyUserBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
# The proxy names the user whom it has authenticated in this header, and proves by a secret that the header is its own.
REMOTE_USER_HEADER = text("OCTWEB_REMOTE_USER_HEADER", "").strip()
REMOTE_USER_SECRET = secret("OCTWEB_REMOTE_USER_SECRET")
REMOTE_USER_CREATE = boolean("OCTWEB_REMOTE_USER_CREATE", False)
refuse_weak_proxy_secret(REMOTE_USER_HEADER, REMOTE_USER_SECRET)
REMOTE_USER_GROUPS_HEADER = text("OCTWEB_REMOTE_USER_GROUPS_HEADER", "").strip()
# Sign-on through an OpenID provider (octweb.core.sign_on), for which requirements-sso.txt must be installed.
OIDC_ISSUER = text("OCTWEB_OIDC_ISSUER", "").strip()
OIDC_CLIENT_ID = text("OCTWEB_OIDC_CLIENT_ID", "").strip()
OIDC_CLIENT_SECRET = secret("OCTWEB_OIDC_CLIENT_SECRET")
OIDC_LABEL = text("OCTWEB_OIDC_LABEL", "your organisation")  # "Sign in with …" on the page
OIDC_SCOPES = text("OCTWEB_OIDC_SCOPES", "openid profile email")
OIDC_NAME_CLAIM = text("OCTWEB_OIDC_NAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = text("OCTWEB_OIDC_GROUPS_CLAIM", "groups")
OIDC_CREATE = boolean("OCTWEB_OIDC_CREATE", False)  # whether unknown names get an account
OIDC_LINK = boolean("OCTWEB_OIDC_LINK", False)  # whether accounts with a password are opened by name, too
OIDC_SESSION_HOURS = integer("OCTWEB_OIDC_SESSION_HOURS", 12)
OIDC_TOKEN_DAYS = integer("OCTWEB_OIDC_TOKEN_DAYS", 30)  # tokens work for this time after a sign-in; 0: always
refuse_incomplete_provider(OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET)
if OIDC_ISSUER:
    AUTHENTICATION_BACKENDS.append("octweb.core.sign_on.SignOnBackend")
# Groups of the provider, or of the proxy, that give a role (octweb.core.roles).
MEMBER_GROUPS = split_groups(text("OCTWEB_MEMBER_GROUPS", ""))
REVIEWER_GROUPS = split_groups(text("OCTWEB_REVIEWER_GROUPS", ""))
ADMINISTRATOR_GROUPS = split_groups(text("OCTWEB_ADMINISTRATOR_GROUPS", ""))
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "octweb.core.throttles.client_address"
AXES_LOCKOUT_CALLABLE = "octweb.core.views.locked_out"
SILENCED_SYSTEM_CHECKS = ["axes.W006", "urls.W002"]  # /v2 and /v2/ are both URLs of the Open Inference Protocol

refuse_old("SMTP", "MAIL")
EMAIL_HOST = text("OCTWEB_MAIL_HOST", "")  # no mail is sent without a host
EMAIL_PORT = integer("OCTWEB_MAIL_PORT", 587)
EMAIL_HOST_USER = text("OCTWEB_MAIL_USER", "")
EMAIL_HOST_PASSWORD = secret("OCTWEB_MAIL_PASSWORD")
EMAIL_USE_TLS = boolean("OCTWEB_MAIL_TLS", True)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = text("OCTWEB_MAIL_FROM", "octweb@localhost")
# links in messages begin with this URL, because workers have no request to take it from
ADDRESS = text("OCTWEB_ADDRESS", "").rstrip("/")

LANGUAGE_CODE = "en-gb"
FORMAT_MODULE_PATH = ["octweb.core.formats"]
TIME_ZONE = text("OCTWEB_TIME_ZONE", "UTC")
USE_I18N = False
USE_TZ = True

STATIC_URL = f"{FORCE_SCRIPT_NAME or ''}/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [SHIPPED / "static"]
STORAGES = {
    "default": store_settings(FILES, folder=MEDIA_ROOT, endpoint=text("OCTWEB_S3_ENDPOINT", "")),
    "staticfiles": {"BACKEND": "octweb.core.static.StaticFiles"},
}

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
if HTTPS:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        # plotly.js writes style rules and style attributes into the page.
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        # signing out leads on to the OpenID provider
        "form-action": ["'self'", *(["{0.scheme}://{0.netloc}".format(urlsplit(OIDC_ISSUER))] if OIDC_ISSUER else [])],
        "frame-ancestors": ["'none'"],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "octweb.serving.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["octweb.core.permissions.SignedIn", "octweb.core.permissions.KnownParameters"],
    "DEFAULT_RENDERER_CLASSES": ["drf_orjson_renderer.renderers.ORJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["octweb.core.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_FILTER_BACKENDS": ["octweb.core.filters.ListFilters"],
    "DEFAULT_PAGINATION_CLASS": "octweb.core.pagination.Pages",
    "DEFAULT_THROTTLE_CLASSES": ["octweb.core.throttles.UserThrottle", "octweb.core.throttles.StrangerThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "user": text("OCTWEB_RATE_USER", "300/min" if DEMO else "6000/min"),
        "stranger": text("OCTWEB_RATE_STRANGER", "60/min"),
    },
    "NUM_PROXIES": PROXIES,  # without it, a forged X-Forwarded-For would evade the limit for strangers
    "EXCEPTION_HANDLER": "octweb.core.problems.exception_handler",
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
KNOX_TOKEN_MODEL = "serving.ApiToken"  # noqa: S105
# The migrations of knox would create a token table that nothing uses.
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {"TOKEN_TTL": None, "AUTO_REFRESH": False, "TOKEN_LIMIT_PER_USER": 100, "AUTH_HEADER_PREFIX": "Token"}
SPECTACULAR_SETTINGS = {
    "TITLE": "octweb",
    "DESCRIPTION": "Optimal classification trees: data sets, training runs, models, predictions.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVERS": [{"url": f"{ADDRESS}{FORCE_SCRIPT_NAME or ''}" or "/"}],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "octweb.core.model_schema.add_components",
        "octweb.serving.protocol_schema.add_protocols",
        "octweb.core.parameters.document_refusals",
        "octweb.core.idempotency.document_keys",
        "octweb.serving.summaries.add_summaries",
        "octweb.serving.examples.add_examples",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ModelState": "octweb.registry.models.State",
        "RunStatus": "octweb.jobs.models.RunStatus",
        "BatchFormat": "octweb.batch.models.Format",
        "ObjectionState": "octweb.decisions.listing.OBJECTIONS",
        "ErasureReason": "octweb.decisions.erasing.USER_REASONS",
        "RowErasureReason": "octweb.datasets.erasing.REASONS",
        "RankingMeasure": ["accuracy", "cost_per_row"],
    },
}

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 10_000}}}

LOG_FORMAT = choice("OCTWEB_LOG_FORMAT", "text", "json")
LOGGING = log_settings(LOG_FORMAT, level=text("OCTWEB_LOG_LEVEL", "INFO"), access=boolean("OCTWEB_ACCESS_LOG", False))

# Pages use only names with a digest. The source maps of the API pages are large, and only developer tools read them.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ("png", "svgz", "gz", "woff", "woff2", "map", "ico", "md", "txt")
