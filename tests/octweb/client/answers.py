"""Answers of a fake server."""

from __future__ import annotations

import json

import httpx

from octweb import client as api

RUN = {"id": "r1", "name": "n", "status": "queued", "progress": {}, "error": "", "model": None}
DATASET = {"id": "d1", "name": "Loans", "rows": 3, "target": "y", "columns": []}
HEAD = {"model": "m1", "name": "loans", "version": 2, "certificate": {"proved_optimal": True}, "notes": []}


def ok(body, status=200) -> httpx.Response:
    return httpx.Response(status, json=body)


def problem(status: int, detail: str = "It is wrong.", **headers: str) -> httpx.Response:
    """Return an error response in the form in which the server sends it."""
    body = {
        "type": "/docs/problems/#a-code",
        "title": "A title",
        "status": status,
        "detail": detail,
        "errors": [{"attr": "depth", "detail": detail, "code": "invalid"}],
    }
    return httpx.Response(status, content=json.dumps(body), headers=headers)


def model_of(client) -> api.RemoteModel:
    return api.RemoteModel(client._connection, {"id": "m1", "name": "loans", "version": 2})
