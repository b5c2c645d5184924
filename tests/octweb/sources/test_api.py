"""The API of sources: preview, queue and refuse counts."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def test_api_previews_and_queues_a_count(sources, counter, client_of, media):
    api = client_of(counter)
    assert api.get("/api/v1/sources/bank/tables/").json() == {"names": ["main.loans"], "of": 1}
    sample = api.post("/api/v1/sources/folder/sample/", {"table": "a.parquet"}, "json").json()
    assert (sample["sample_rows"], sample["names"]) == (150, ["income", "colour", "customer", "paid"])
    assert [column["kind"] for column in sample["columns"]][:2] == ["numeric", "categorical"]
    body = {"source": "bank", "table": "loans", "target": "paid", "folds": 3, "key": "customer", "ignore": ["colour"]}
    answer = api.post("/api/v1/counts/", body, "json")
    assert answer.status_code == 201, answer.content
    job = answer.json()
    assert (job["status"], job["dataset"], job["depth"]) == ("queued", None, 3)
    assert api.get("/api/v1/counts/").json()["count"] == 1
    assert api.post(f"/api/v1/counts/{job['id']}/cancel/").json()["status"] == "cancelled"
    wrong = [
        ({"target": "debt"}, 422),
        ({"depth": 4}, 400),
        ({"source": "nothing"}, 404),
        ({"adress": "duckdb:x"}, 400),
    ]
    for change, status in wrong:
        assert api.post("/api/v1/counts/", body | change, "json").status_code == status, change
