"""The column form of an upload accepts as many columns as a table may have."""

from __future__ import annotations

import io
import re

import pytest

from octweb.datasets import actions as datasets
from octweb.datasets.models import Dataset

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]  # only the content of the page is tested
COLUMNS = 400  # Django's default limit is 1,000 fields, and this form has 2,400


@pytest.mark.slow
def test_a_wide_upload_is_stored_with_what_its_page_sends(client, owner, media):
    client.force_login(owner)
    names = ",".join(f"c{j}" for j in range(COLUMNS))
    rows = "".join(",".join(f"{(i * j) % 7}.5" for j in range(COLUMNS)) + f",{'ab'[i % 2]}\n" for i in range(12))
    upload = datasets.stage(owner=owner, file=io.BytesIO(f"{names},class\n{rows}".encode()), source_name="wide.csv")
    address = f"/datasets/uploads/{upload.pk}/"
    html = client.get(address).content.decode()
    fields = {}
    for tag in re.findall(r"<input[^>]*>", html):
        name = re.search(r'name="([^"]+)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        if name and ("checkbox" not in tag or " checked" in tag):
            fields[name[1]] = value[1] if value else ""
    for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', html, re.DOTALL):
        tag, text = next((o for o in re.findall(r"(<option[^>]*>)([^<]*)", options) if " selected" in o[0]), ("", ""))
        value = re.search(r'value="([^"]*)"', tag)
        fields[name] = value[1] if value else text
    fields |= {"target": "class", "confirm": "1"}
    assert len(fields) > 1000
    answer = client.post(address, fields)
    assert answer.status_code == 302, answer.content.decode()[:3000]
    assert len(Dataset.objects.get(owner=owner).columns) >= COLUMNS
