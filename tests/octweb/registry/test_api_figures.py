"""GET models/{id}/figures/tree/ and figures/nodes/{node}/, and the picture of a comparison."""

from __future__ import annotations

import pytest

from tests.octweb.registry.test_pages import dataset  # noqa: F401  (fixture)

pytestmark = pytest.mark.one_database  # everything is computed from the tree


def test_pictures_and_who_sees_them(register, dataset, client_of, owner, stranger, staff):  # noqa: F811
    model = register(dataset=dataset)
    base = f"/api/v1/models/{model.pk}/figures"
    client = client_of(owner)
    tree = client.get(f"{base}/tree/").json()
    assert len(tree["layout"]["meta"]["nodes"]) == 2 * model.leaves - 1
    assert client.get(f"{base}/tree/?leaf={2 * model.leaves - 2}").json() != tree
    lit = client.get(f"{base}/tree/?leaf={','.join(str(i) for i in range(2 * model.leaves - 1))}").json()
    marked = next(t for t in lit["data"] if t["name"] == "on the path")
    assert sum(x is None for x in marked["x"]) >= 2 * model.leaves - 2  # every card is highlighted
    assert client.get(f"{base}/nodes/0/").json()["data"]
    assert client.get(f"{base}/nodes/0/?legend=0").json()["layout"]["showlegend"] is False
    statuses = {f"{base}/{rest}": status for rest, status in (
        ("tree/?leaf=x", 400), ("tree/?leaf=9999", 400), ("nodes/9999/", 404), ("nodes/0/?picture=9", 404),
    )}  # fmt: skip
    assert {url: client.get(url).status_code for url in statuses} == statuses
    assert client_of(stranger).get(f"{base}/tree/").status_code == 404
    assert client_of(staff).get(f"{base}/nodes/0/").status_code == 200


def test_the_picture_of_a_split_shows_rows_and_is_for_insiders(approved, client_of, stranger):
    assert client_of(stranger).get(f"/api/v1/models/{approved.pk}/figures/tree/").status_code == 200
    assert client_of(stranger).get(f"/api/v1/models/{approved.pk}/figures/nodes/0/").status_code == 404


def test_the_frontier(register, dataset, client, owner):  # noqa: F811
    register(dataset=dataset)
    client.force_login(owner)
    drawn = client.get(f"/api/v1/models/figures/compare/?dataset={dataset.pk}").json()["data"]
    assert any("(version 1)" in words for trace in drawn for words in trace.get("hovertext", []))
