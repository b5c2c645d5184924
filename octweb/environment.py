"""Read typed settings from the environment. Bad values raise ImproperlyConfigured."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import re
import secrets
import threading
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import lazy

MIN_PROXY_SECRET_CHARACTERS = 32  # characters


def text(name: str, default: str) -> str:
    return os.environ.get(name, default)


def secret(name: str) -> str:
    """Return a secret setting: the variable `name`, or the content of the file that `name`_FILE names, or "".

    Spaces and line ends around the content are dropped. Raises ImproperlyConfigured if both variables are set, or if
    the file is missing, unreadable or empty.
    """
    value = os.environ.get(name, "")
    path = os.environ.get(f"{name}_FILE", "")
    if not path:
        return value
    if value:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them.")
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ImproperlyConfigured(f"{name}_FILE names '{path}', which cannot be read: {reason}.") from None
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE names '{path}', which is empty; write the secret into it.")
    return content


def boolean(name: str, default: bool) -> bool:
    raw = os.environ.get(name, "").strip().lower()
    if raw in {"", "1", "true", "yes", "on", "0", "false", "no", "off"}:
        return raw in {"1", "true", "yes", "on"} if raw else default
    raise ImproperlyConfigured(f"{name} is '{raw}'; it must be 1 or 0.")


def integer(name: str, default: int) -> int:
    raw = os.environ.get(name, "").strip()
    try:
        return int(raw) if raw else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} is '{raw}'; it must be a whole number.") from None


def one_of(name: str, *allowed: int) -> int:
    """Return an integer setting. `allowed` are its values, the default first."""
    value = integer(name, allowed[0])
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value}; it must be {' or '.join(map(str, allowed))}.")
    return value


def choice(name: str, *allowed: str) -> str:
    """Return a text setting in lower case. `allowed` are its values, the default first."""
    value = os.environ.get(name, "").strip().lower() or allowed[0]
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is '{value}'; it must be {' or '.join(filter(None, allowed))}.")
    return value


def words_setting(name: str, default: str) -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def sources_setting(name: str) -> dict[str, dict[str, Any]]:
    """Return the sources of rows that an administrator offers: name → address, and groups and teams that may count it.

    No message quotes an address, because it may hold a password. Raises ImproperlyConfigured.
    """
    raw = secret(name)
    try:
        record = json.loads(raw or "{}")
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not JSON: {str(error).partition(': line')[0]}.") from None
    if not isinstance(record, dict):
        raise ImproperlyConfigured(f'{name} must be an object: {{"name": "address"}}.')
    sources = {}
    for source, value in record.items():
        entry = {"address": value} if isinstance(value, str) else value
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,49}", source):
            raise ImproperlyConfigured(f"{name}: the name '{source[:60]}' must have 1 to 50 of a-z, 0-9 and -.")
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("address"), str)
            or set(entry) - {"address", "groups", "teams"}
        ):
            raise ImproperlyConfigured(
                f"{name}: '{source}' must be an address, or an object with address, groups and teams."
            )
        groups = entry.get("groups", [])
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise ImproperlyConfigured(f"{name}: the groups of '{source}' must be a list of names.")
        try:
            teams = tuple(uuid.UUID(team) for team in entry.get("teams", []))
        except (TypeError, ValueError, AttributeError):
            raise ImproperlyConfigured(f"{name}: the teams of '{source}' must be a list of their ids.") from None
        if entry["address"].removeprefix("duckdb:").removeprefix("//") in ("", "/"):
            raise ImproperlyConfigured(f"{name}: '{source}' needs a folder, a bucket or a database.")
        sources[source] = {"address": entry["address"], "groups": tuple(groups), "teams": teams}
    return sources


def refuse_old(group: str, new: str) -> None:
    """Raise ImproperlyConfigured if a variable OCTWEB_<group>_… is set. It must be called OCTWEB_<new>_…."""
    for name in sorted(os.environ):
        kind, _, rest = name.removeprefix("OCTWEB_").partition("_")
        if name.startswith("OCTWEB_") and kind == group:
            raise ImproperlyConfigured(f"{name} has no effect any more; set OCTWEB_{new}_{rest} instead.")


def refuse_weak_proxy_secret(header: str, value: str) -> None:
    """Raise ImproperlyConfigured if a header names users, and anybody could send or guess what proves it."""
    if header and len(value) < MIN_PROXY_SECRET_CHARACTERS:
        raise ImproperlyConfigured(
            f"OCTWEB_REMOTE_USER_HEADER is set, so OCTWEB_REMOTE_USER_SECRET needs {MIN_PROXY_SECRET_CHARACTERS} characters or more, "
            "which the proxy sends in the header Octweb-Proxy-Secret."
        )


def split_groups(value: str) -> list[str]:
    """Return the groups of a list: separated by semicolons if it has any (LDAP names have commas), else by commas."""
    return [group.strip() for group in value.split(";" if ";" in value else ",") if group.strip()]


def refuse_incomplete_provider(issuer: str, client: str, value: str) -> None:
    """Raise ImproperlyConfigured if an OpenID provider is named, but cannot be used, or not safely."""
    if not issuer:
        return
    address = urlsplit(issuer)
    if address.scheme != "https" and not (address.scheme == "http" and address.hostname in ("localhost", "127.0.0.1")):
        raise ImproperlyConfigured(f"OCTWEB_OIDC_ISSUER is '{issuer}'; it must begin with https://.")
    if not client or not value:
        raise ImproperlyConfigured(
            "OCTWEB_OIDC_ISSUER is set, so OCTWEB_OIDC_CLIENT_ID and OCTWEB_OIDC_CLIENT_SECRET must be, too."
        )
    refuse_missing("mozilla_django_oidc", "OCTWEB_OIDC_ISSUER", "sso")


def refuse_missing(module: str, cause: str, extra: str) -> None:
    """Raise ImproperlyConfigured if the module that a setting needs is not installed."""
    if importlib.util.find_spec(module) is None:
        raise ImproperlyConfigured(f"{cause} needs a package that is not installed: pip install 'octweb[{extra}]'.")


def secret_key(folder: Path) -> str:
    """Return OCTWEB_SECRET_KEY (or _FILE), or else a lazy string with the key in the data folder.

    The key file is read, or created, at first use. Commands without sessions or signatures therefore do not touch it.
    """
    key = secret("OCTWEB_SECRET_KEY")
    return key or lazy(_kept_key, str)(folder)


@functools.cache
def _kept_key(folder: Path) -> str:
    """Return the random key in the data folder. If needed, create the file, readable by its owner only."""
    path = folder / "secret_key"
    try:
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_key(path)
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"The secret key cannot be kept in '{folder}': {error.strerror}. "
            "Set OCTWEB_DATA_DIR to a folder that can be written, or set OCTWEB_SECRET_KEY."
        ) from error


def _write_key(path: Path) -> None:
    temporary = path.with_name(f".secret_key.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):  # if another process was first, its key counts
            os.link(temporary, path)
    finally:
        temporary.unlink()


def store_settings(where: str, *, folder: Path, endpoint: str) -> dict[str, Any]:
    """Return Django's settings for the file store in OCTWEB_FILES: a folder, or s3://bucket/prefix."""
    if not where.startswith("s3://"):
        location = str(Path(where).resolve()) if where else str(folder)
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": location}}
    refuse_missing("storages", "OCTWEB_FILES=s3://…", "hosts")
    bucket, _, prefix = where.removeprefix("s3://").partition("/")
    options: dict[str, Any] = {
        "bucket_name": bucket,
        "location": prefix.strip("/"),
        "default_acl": None,  # files are as private as the bucket
        "file_overwrite": False,
        "max_memory_size": 16_000_000,  # bytes; larger files are buffered on disk
    }
    keys = {"access_key": "AWS_ACCESS_KEY_ID", "secret_key": "AWS_SECRET_ACCESS_KEY"}
    # keys from variables alone are left to boto3, which also knows roles of the machine; it needs both from one place
    if any(os.environ.get(f"{name}_FILE") for name in keys.values()):
        options |= {option: secret(name) for option, name in keys.items()}
    if endpoint:
        options["endpoint_url"] = endpoint
        options["addressing_style"] = "path"  # servers other than Amazon's seldom have a host name for each bucket
    return {"BACKEND": "octweb.core.stores.Bucket", "OPTIONS": options}
