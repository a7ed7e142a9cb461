"""The site's only settings, read from the environment; docs/settings.md explains each of them."""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from kbench_web import env

BASE_DIR = Path(__file__).resolve().parent.parent
environ.Env.read_env(BASE_DIR / ".env")

DATA_DIR = Path(env.text("KBENCH_DATA_DIR", str(BASE_DIR / "var")))
PRODUCTION = env.flag("KBENCH_PRODUCTION", default=False)
DEBUG = env.flag("KBENCH_DEBUG", default=False)
if PRODUCTION and DEBUG:
    raise ImproperlyConfigured("KBENCH_DEBUG shows secrets to visitors; unset it in production.")
SECRET_KEY = env.secret("KBENCH_SECRET_KEY", DATA_DIR / "secret_key", production=PRODUCTION)

ALLOWED_HOSTS = env.words("KBENCH_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
if PRODUCTION and not os.environ.get("KBENCH_ALLOWED_HOSTS"):
    raise ImproperlyConfigured("KBENCH_ALLOWED_HOSTS must list the site's hosts in production.")
CSRF_TRUSTED_ORIGINS = env.words("KBENCH_TRUSTED_ORIGINS", [])

FEATURES = [
    "runs_app.features.curation",
    "runs_app.features.advice",
    "runs_app.features.challenges",
    "runs_app.features.compare",
    "runs_app.features.operations",
    "runs_app.features.reevaluation",
    "runs_app.features.transfer",
    "runs_app.features.notices",
    "runs_app.features.spool",
    "runs_app.features.rewards",
]
"""What can be left out of a site: a Django app each, which joins in by hooks: docs/features.md."""

INSTALLED_APPS = [
    "kbench_web.people",  # before Django's own apps: its `createsuperuser` is logged
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "django_rq",
    "ninja",
    "kbench_web",
    "tasks_app",
    "runs_app",
    *FEATURES,
    "leaderboard_app",
]

MIDDLEWARE = [
    "kbench_web.proxies.TrustedProxyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # It adds random bytes, and forms mask their tokens: lengths tell nothing of a page's secrets.
    "django.middleware.gzip.GZipMiddleware",
    "csp.middleware.CSPMiddleware",
    "kbench_web.api_access.ApiRateLimitMiddleware",
    "kbench_web.api_answers.ApiErrorMiddleware",
    "kbench_web.api_answers.ApiAnswerMiddleware",
    "kbench_web.parameters.UnstorableTextMiddleware",
    "kbench_web.parameters.KnownParametersMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "kbench_web.rate_limit.UploadRateLimitMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "kbench_web.urls"
ASGI_APPLICATION = "kbench_web.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs_app.core.integrity.page.navigation",
            ],
            # Tags of a feature lie in its folder; those of tasks and numbers in the app's own.
            "libraries": {
                "checks": "runs_app.core.checks.tags",
                "slots": "runs_app.core.tags",
                "run_display": "runs_app.optimiser.tags",
                "eligibility": "runs_app.core.integrity.tags",
                "verdicts": "runs_app.submitting.tags",
                "boards": "leaderboard_app.boards.tags",
            },
        },
    },
]


def _database() -> dict[str, Any]:
    """The database of DATABASE_URL, or SQLite in the data directory."""
    url = env.text("DATABASE_URL", f"sqlite:///{DATA_DIR / 'kbench.sqlite3'}")
    try:
        database: dict[str, Any] = environ.Env.db_url_config(url)
    except (environ.ImproperlyConfigured, ValueError) as error:
        raise ImproperlyConfigured(
            f"DATABASE_URL is not a valid database address: {error}"
        ) from None
    if database.get("ENGINE") == "django.db.backends.sqlite3":
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        # Writers queue up at BEGIN instead of failing in mid-transaction; readers never wait.
        database["OPTIONS"] = {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
        name = f"test-kbench-{os.getpid()}.sqlite3"  # no leftover of a runner
        database["TEST"] = {"NAME": str(Path(tempfile.gettempdir()) / name)}
    elif database.get("ENGINE") == "django.db.backends.postgresql":
        database["CONN_HEALTH_CHECKS"] = True
        # Compiling the query of a long board takes 0.3 s, and running it 0.1 s. Disks are not the
        # slow ones that its costs are made for: it would read a million rows instead of an index.
        database.setdefault("OPTIONS", {}).setdefault(
            "options", "-c jit=off -c random_page_cost=1.1"
        )
    else:
        raise ImproperlyConfigured("DATABASE_URL must begin with postgres:// or sqlite:///.")
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The site's own Redis: cache, sockets, and the queues of its workers. No runner may reach it.
REDIS_URL = env.text("REDIS_URL", env.kept_url(DATA_DIR / "redis"))
# The Redis of runners on the site's own hosts; each has a login that reaches its own keys alone.
RUNNERS_REDIS_URL = env.text(
    "KBENCH_RUNNERS_REDIS_URL", env.kept_url(DATA_DIR / "redis-runners", otherwise=REDIS_URL)
)
LOCAL_RUNNER = "local"
"""Name of the runners that `make up` starts beside the site."""
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "kbench"},
    },
}
RQ_QUEUES = {
    name: {"URL": REDIS_URL, "SERIALIZER": "rq.serializers.JSONSerializer"}
    for name in ("runs", "calls")
}
CACHES = {
    "default": {
        "BACKEND": "kbench_web.patient_cache.PatientRedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "kbench",
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    },
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# A name and an address are counted together, so that nobody can lock others out from elsewhere.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_HANDLER = "kbench_web.accounts.lockout.SignInHandler"  # counts an address by itself, too
SIGN_IN_FAILURES_PER_ADDRESS = env.whole("KBENCH_SIGN_IN_FAILURES_PER_ADDRESS", 30, least=1)
AXES_CLIENT_IP_CALLABLE = "kbench_web.proxies.client_address"
AXES_COOLOFF_TIME = timedelta(minutes=10)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_LOCKOUT_TEMPLATE = "kbench_web/locked_out.html"
AXES_VERBOSE = False
MESSAGE_TAGS = {25: "good", 30: "warn", 40: "bad"}  # success, warning, error
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"

SIGN_UP = env.one_of("KBENCH_SIGN_UP", "open", ("open", "invitation", "closed"))
EMAIL_CONFIGURED = bool(env.text("KBENCH_EMAIL_URL", ""))
if EMAIL_CONFIGURED:
    vars().update(env.email(env.text("KBENCH_EMAIL_URL", "")))
DEFAULT_FROM_EMAIL = env.text("KBENCH_EMAIL_FROM", f"kbench@{ALLOWED_HOSTS[0].lstrip('.')}")
EMAIL_TIMEOUT = 10
# Links in e-mail and webhooks begin with it: no request is there to tell.
_usual = f"https://{ALLOWED_HOSTS[0].lstrip('.')}" if PRODUCTION else "http://localhost:8000"
SITE_URL = env.text("KBENCH_SITE_URL", _usual).rstrip("/")

ACCOUNT_ADAPTER = "kbench_web.accounts.adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = [
    "username*",
    *(["email"] if EMAIL_CONFIGURED else []),
    "password1*",
    "password2*",
]
ACCOUNT_EMAIL_VERIFICATION = "optional" if EMAIL_CONFIGURED else "none"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "kbench: "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if PRODUCTION else "http"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_MAX_EMAIL_ADDRESSES = 3
# Wrong passwords are counted by axes, which needs no Redis and knows names with their addresses.
_SIGN_UPS = (
    f"{env.whole('KBENCH_SIGN_UPS_PER_MINUTE', 10, least=1)}/m/ip,"
    f"{env.whole('KBENCH_SIGN_UPS_PER_DAY', 50, least=1)}/d/ip"
)
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None, "signup": _SIGN_UPS}
SOCIALACCOUNT_ADAPTER = "kbench_web.accounts.adapter.SocialAdapter"
SOCIALACCOUNT_AUTO_SIGNUP = False  # people choose the name that everybody will see
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_QUERY_EMAIL = False
SOCIALACCOUNT_PROVIDERS = env.sign_in_providers()

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False  # all is in English: asking for the language took 5 % of a long page
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
STATICFILES_DIRS = [path for path in (BASE_DIR / "static",) if path.is_dir()]
# Collected files are compressed and kept by browsers; others are served from where they lie.
COLLECTED_FILES = env.flag("KBENCH_COLLECTED_FILES", default=PRODUCTION) and not DEBUG
WHITENOISE_USE_FINDERS = not COLLECTED_FILES
WHITENOISE_AUTOREFRESH = not COLLECTED_FILES
_STATIC_STORAGE = (
    "kbench_web.static_storage.HashedStorage"
    if COLLECTED_FILES
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_STORAGE},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "style-src-attr": ["'unsafe-inline'"],  # charts place their labels by style attributes
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF, *env.sign_in_origins()],  # a form's answer may lead there
        "frame-ancestors": [NONE],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = PRODUCTION
CSRF_COOKIE_SECURE = PRODUCTION
SECURE_SSL_REDIRECT = PRODUCTION and env.flag("KBENCH_HTTPS_REDIRECT", default=True)
SECURE_HSTS_SECONDS = env.whole("KBENCH_HSTS_SECONDS", 3600 if PRODUCTION else 0)
TRUSTED_PROXIES = env.networks("KBENCH_TRUSTED_PROXIES")
if TRUSTED_PROXIES:  # of others the middleware drops the header
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024  # a 1 MiB source, escaped as JSON, and more
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

MAX_WAITING_PER_USER = env.whole("KBENCH_MAX_WAITING_PER_USER", 20, least=1)
MAX_SUBMISSIONS_PER_DAY = env.whole("KBENCH_MAX_SUBMISSIONS_PER_DAY", 500, least=1)
# In its first days an account may use this share of what others may.
NEW_ACCOUNT_DAYS = env.whole("KBENCH_NEW_ACCOUNT_DAYS", 3)
NEW_ACCOUNT_SHARE = min(env.number("KBENCH_NEW_ACCOUNT_SHARE", 0.25), 1.0)
MAX_OPEN_DRAFTS_PER_USER = env.whole("KBENCH_MAX_OPEN_DRAFTS_PER_USER", 5, least=1)
MAX_CHECK_MINUTES_PER_DAY = env.whole("KBENCH_MAX_CHECK_MINUTES_PER_DAY", 60, least=1)
API_REQUESTS_PER_MINUTE = env.whole("KBENCH_API_REQUESTS_PER_MINUTE", 600, least=1)
# An upload may be read for 10 s: with six a minute one user keeps one thread of the site busy.
UPLOADS_PER_MINUTE = env.whole("KBENCH_UPLOADS_PER_MINUTE", 6, least=1)
JOB_TIMEOUT_S = env.whole("KBENCH_JOB_TIMEOUT_S", 3600, least=60)
DEVICE_USD_PER_HOUR = env.number("KBENCH_DEVICE_USD_PER_HOUR", 0.0)
SUBMIT_SHIPPED_KERNELS = env.flag("KBENCH_SUBMIT_SHIPPED_KERNELS", default=True)
MAX_ATTEMPTS = env.whole("KBENCH_MAX_ATTEMPTS", 3, least=1)
# A work-horse reports every few seconds; this long a silence means that it is gone.
SILENCE_S = env.whole("KBENCH_SILENCE_S", 60, least=10)
MAX_RUNNING_RUNS_PER_USER = env.whole("KBENCH_MAX_RUNNING_RUNS_PER_USER", 4, least=1)
# US dollars; they bind users who are no admins, in runs with language models that have a price.
MAX_RUN_USD = env.number("KBENCH_MAX_RUN_USD", 20.0)
MAX_USD_PER_USER_DAY = env.number("KBENCH_MAX_USD_PER_USER_DAY", 50.0)
CALL_WORKERS = env.whole("KBENCH_CALL_WORKERS", 8, least=1)
# The process of a call says every few seconds that it is alive.
CALL_SILENCE_S = env.whole("KBENCH_CALL_SILENCE_S", 90, least=10)
KEY_VARIABLES = env.words("KBENCH_KEY_VARIABLES", [])
# `runs_app.optimiser.llm.endpoint` reads it itself.
AGENT_COMMANDS = env.text("KBENCH_AGENT_COMMANDS", "")
METRICS_TOKEN = env.text("KBENCH_METRICS_TOKEN", "")
RUNNER_TIMEOUT_S = env.whole("KBENCH_RUNNER_TIMEOUT_S", 30, least=5)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "filters": {
        "brief": {"()": "kbench_web.out_of_service.BriefFilter"},
        "not_503": {"()": "kbench_web.out_of_service.Not503"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["brief"],
        }
    },
    "root": {"handlers": ["console"], "level": env.text("KBENCH_LOG_LEVEL", "INFO")},
    "loggers": {
        "axes": {"level": "WARNING"},
        "django.server": {"level": "WARNING"},
        "django.request": {"level": "ERROR", "filters": ["not_503"]},
        "httpx2": {"level": "WARNING"},  # a line for each call of a language model
    },
}
