"""Cases and oracles of `test_api_explain.py` that other tests use, too."""

from __future__ import annotations

import orjson


def explain(client, model, body):
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return client.post(f"/api/v1/models/{model.pk}/explain/", data, content_type="application/json")
