"""Names with HTML, JavaScript or formulas stay plain text on every page and in every export."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree

import pytest

from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset
from octweb.registry.lifecycle import actions as registry
from octweb.registry.page.downloads import FORMATS
from octweb.teams import actions as teams
from tests.octweb.test_every_address import ROUTES, Things, filled, refused_decision
from trainer.training.run import TrainRequest, train

pytestmark = pytest.mark.django_db
HTML = "<img src=x onerror=alert(1)>"
ENDS = "</script><script>alert(2)</script>"
FORMULA = '=HYPERLINK("http://x","y")'
RAW = ("<img src=x", "<script>alert", "</script><script>")
NAMES = (HTML, ENDS, FORMULA)
CSV = (",".join(['"' + name.replace('"', '""') + '"' for name in (*NAMES, "class")]) + "\n") + "".join(
    f'{i % 7}.5,{(i * i) % 11},"{(HTML, ENDS, FORMULA)[i % 3].replace(chr(34), chr(34) * 2)}","{(HTML, ENDS)[(i % 7 > 3) != (i % 3 == 0)]}"\n'
    for i in range(120)
)


@pytest.fixture
def things(owner, media) -> Things:
    dataset = datasets.create(
        owner=owner, file=io.BytesIO(CSV.encode()), source_name=f"{ENDS}.csv", name=HTML, target="class"
    )
    table, labels = datasets.load(dataset)
    request = TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 3}, name=ENDS)
    model = registry.register(owner=owner, document=train(request).model.to_json(), dataset=dataset, title=HTML)
    upload = datasets.stage(owner=owner, file=io.BytesIO(CSV.encode()), source_name=f"{HTML}.csv")
    prefixes = {"datasets/uploads/": upload.pk, "datasets/": dataset.pk, "models/": model.pk}
    prefixes["decisions/"] = refused_decision(model)
    team = teams.create(by=owner, name=HTML)
    Dataset.objects.update(team=team)
    prefixes |= {"teams/of/": dataset.pk, "teams/": team.pk}
    return Things(by_prefix={k: str(v) for k, v in prefixes.items()}, family=model.family.name, team=team)


PAGES = [r for r in ROUTES if not r.startswith(("api/", "v2")) and ("datasets/" in r or "models/" in r or "<" not in r)]


def test_names_are_escaped_in_html(things, client, owner):
    """This is one test for all pages, because creating the model takes most of the time."""
    client.force_login(owner)
    looked = 0
    found = {}
    for route in PAGES:
        address, _ = filled(route, things)
        answer = client.get(address)
        if answer.status_code == 200 and answer["Content-Type"].startswith(("text/html", "image/svg")):
            content = (b"".join(answer) if answer.streaming else answer.content).decode()
            looked += "onerror" in content or "alert(2)" in content
            if bad := [part for part in RAW if part in content]:
                found[route] = bad
    assert found == {}
    assert looked > 5  # pages that show one of the names


def test_exports_never_execute_names(things, client, owner):
    client.force_login(owner)
    formats = {}
    for name in FORMATS:
        answer = client.get(f"/models/{things.by_prefix['models/']}/download/{name}/")
        if answer.status_code == 200:
            formats[name] = (b"".join(answer) if answer.streaming else answer.content, answer["Content-Disposition"])
    assert len(formats) > 5
    assert not any("\n" in head or "<" in head for _, head in formats.values())
    assert [part for part in RAW if part in formats["html"][0].decode()] == []
    for name in formats.keys() & {"pmml", "dmn"}:
        ElementTree.fromstring(formats[name][0])
    if "excel" in formats:
        head, *_ = csv.reader(io.StringIO(formats["excel"][0].decode()))
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in head)
