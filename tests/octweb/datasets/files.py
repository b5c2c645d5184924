"""Files, clients and checks for tests of data sets."""

from __future__ import annotations

from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

API = "/api/v1/datasets/"
GOOD = b"code,country,day,size,label\n" + b"".join(
    b"%05d,%s,day-01-%02d,%d.5,%s\n" % (i % 4, (b"NA", b"DE", b"FR")[i % 3], i % 9 + 1, i, (b"yes", b"no")[i % 2])
    for i in range(40)
)


def api(user) -> APIClient:
    client = APIClient(raise_request_exception=False)
    if user is not None:
        client.force_authenticate(user)
    return client


def upload(content: bytes, name: str = "t.csv") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def post(user, content: bytes, file_name: str = "t.csv", **fields):
    """Upload a file over the API, and return the response."""
    return api(user).post(API, {"file": upload(content, file_name), **fields}, format="multipart")


def stored_files(media: Path) -> list[Path]:
    return [p for p in media.rglob("*") if p.is_file()]
