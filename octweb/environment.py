"""Reading settings from the environment: typed, with an error for a bad value."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str) -> str:
    return os.environ.get(name, default)


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


def words(name: str, default: str) -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def refuse_old(group: str, new: str) -> None:
    """Raise ImproperlyConfigured where a variable OCTWEB_<group>_… is set, and say that its name is OCTWEB_<new>_… now."""
    for name in sorted(os.environ):
        kind, _, rest = name.removeprefix("OCTWEB_").partition("_")
        if name.startswith("OCTWEB_") and kind == group:
            raise ImproperlyConfigured(f"{name} has no effect any more; set OCTWEB_{new}_{rest} instead.")


def secret_key(folder: Path) -> str:
    """OCTWEB_SECRET_KEY, or a random key kept in the data folder in a file that only its owner can read."""
    if key := os.environ.get("OCTWEB_SECRET_KEY", ""):
        return key
    path = folder / "secret_key"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".secret_key.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(64))
        try:
            os.link(temporary, path)  # fails if another process was first; then its key counts
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return path.read_text().strip()


def store_settings(where: str, *, folder: Path, endpoint: str) -> dict[str, Any]:
    """Django's description of the store that OCTWEB_FILES names: a folder, or s3://bucket/prefix."""
    if not where.startswith("s3://"):
        location = str(Path(where).resolve()) if where else str(folder)
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": location}}
    bucket, _, prefix = where.removeprefix("s3://").partition("/")
    options: dict[str, Any] = {
        "bucket_name": bucket,
        "location": prefix.strip("/"),
        "default_acl": None,  # as private as the bucket
        "file_overwrite": False,
        "max_memory_size": 16_000_000,  # larger files go over the disk
    }
    if endpoint:
        options["endpoint_url"] = endpoint
        options["addressing_style"] = "path"  # servers other than Amazon's seldom have a host name for each bucket
    return {"BACKEND": "octweb.core.stores.Bucket", "OPTIONS": options}
