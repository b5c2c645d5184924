"""Cases and oracles of `test_api_predict.py` that other tests use, too."""

from __future__ import annotations

import orjson

ROW = {"width": 7.5, "height": 0.2, "flag": 1, "colour": "green"}


def predict(client, model, body, query=""):
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return client.post(f"/api/v1/models/{model.pk}/predict/{query}", data, content_type="application/json")
