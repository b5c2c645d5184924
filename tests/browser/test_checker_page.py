"""The checker page in a browser, opened from disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.accessible import violations
from trainer.data.reader import load
from trainer.training.run import TrainRequest, save, train

pytestmark = pytest.mark.browser
PAGE = Path(__file__).resolve().parents[2] / "checker" / "check_octweb.html"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_the_page_checks_files_from_disk(windows, tmp_path, method):
    data = tmp_path / "rows.csv"
    model = tmp_path / "model.json"
    proof = tmp_path / "proof.jsonl.gz"
    data.write_text("x,z,y\n" + "".join(f"{k * 7 % 11},{k % 5},{'ab'[k * k % 7 > 2]}\n" for k in range(40)))
    table, labels, _ = load(data, target="y")
    request = TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 3}, proof=proof)
    save(train(request).model, model)
    page = windows.page()
    errors: list[object] = []
    page.on("pageerror", lambda error: errors.append(error))
    page.on("console", lambda message: errors.append(message.text))
    page.on("request", lambda request: None if request.url.startswith("file:") else errors.append(request.url))

    def check(proof: Path) -> list[str]:
        page.goto(PAGE.as_uri())
        for name, path in (("model", model), ("proof", proof), ("data", data)):
            page.set_input_files(f"#{name}", path)
        page.click("#go")
        expect(page.locator("#verdict")).to_contain_text("Verdict")
        return [item.inner_text() for item in page.query_selector_all("#said li")]

    said = check(proof)
    assert len(said) == 3
    assert all(line.startswith("Holds:") for line in said), said
    assert page.inner_text("#verdict") == "Verdict: the proof holds."
    expect(page.locator("#go")).to_be_focused()
    other = tmp_path / "other.jsonl"
    other.write_bytes(gzip.decompress(proof.read_bytes()).replace(b'"rows":"', b'"rows":"0'))
    assert check(other)[0].startswith("Does not hold: The proof was made for another table")
    assert page.inner_text("#verdict") == "Verdict: the proof does not hold."
    rows = data.read_text()
    claims = model.read_text()
    data.write_text(rows.replace("\n0,0,", "\n1,0,", 1))
    assert check(proof)[0].startswith("Does not hold: The proof was made for another table")
    data.write_text(rows)
    document = json.loads(claims)
    document["certificate"]["bound"] -= 0.05
    model.write_text(json.dumps(document))
    assert check(proof)[-1].startswith("Does not hold: The model claims the bound")
    model.write_text("not a model")
    assert check(proof) == ["Not judged: The first file is not a model: a model file is JSON."]
    model.write_text(claims)
    if method == "exact":
        data.write_text("x;z;y\n" + "".join(f"{k * 7 % 11},5;{k % 5};{'ab'[k * k % 7 > 2]}\n" for k in range(40)))
        table, labels, _ = load(data, target="y")
        save(
            train(TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 2}, proof=proof)).model,
            model,
        )
        said = check(proof)
        assert [line.partition(":")[0] for line in said] == ["Not judged"]
        assert "its column x is read in another way" in said[0]
    assert not errors


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (380, "dark")])
def test_the_page_is_accessible_and_asks_for_what_is_missing(windows, width, theme):
    page = windows.page(width=width, height=800, dark=theme == "dark")
    page.goto(PAGE.as_uri())
    page.focus("#go")
    page.keyboard.press("Enter")
    expect(page.locator("#verdict")).to_have_text("Choose the three files first.")
    expect(page.locator("#model")).to_be_focused()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
