"""The page that checks proofs, opened from disk."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from trainer.data.reader import load
from trainer.run import TrainRequest, save, train

pytestmark = pytest.mark.browser
PAGE = Path(__file__).resolve().parents[2] / "checker" / "check_octweb.html"


@pytest.mark.parametrize("method", ["exact", "exact-numeric"])
def test_the_page_checks_files_from_disk(browser, tmp_path, method):
    data, model, proof = tmp_path / "rows.csv", tmp_path / "model.json", tmp_path / "proof.jsonl.gz"
    data.write_text("x,z,y\n" + "".join(f"{k * 7 % 11},{k % 5},{'ab'[k * k % 7 > 2]}\n" for k in range(40)))
    table, labels, _ = load(data, target="y")
    request = TrainRequest(table=table, labels=labels, method=method, parameters={"depth": 3}, proof=proof)
    save(train(request).model, model)
    page = browser.new_page()
    errors: list[object] = []
    page.on("pageerror", lambda error: errors.append(error))

    def check(proof: Path) -> list[str]:
        page.goto(PAGE.as_uri())
        for name, path in (("model", model), ("proof", proof), ("data", data)):
            page.set_input_files(f"#{name}", path)
        page.click("#go")
        page.wait_for_selector("#said li")
        return [item.inner_text() for item in page.query_selector_all("#said li")]

    said = check(proof)
    assert len(said) == 3
    assert all(line.startswith("Holds:") for line in said), said
    other = tmp_path / "other.jsonl"
    other.write_bytes(gzip.decompress(proof.read_bytes()).replace(b'"rows":"', b'"rows":"0'))
    assert check(other)[0].startswith("Does not hold: The proof was made for another table")
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
    page.close()
