"""Pages that only `python -m docs.pictures` opens. Pytest does not collect them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.pictures import picture
from tests.browser.test_workspace import LONG, opened, planes, twenty, wide  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_large_tree_in_the_dark(opened, wide):  # noqa: F811
    page = opened(wide, dark=True)
    page.wait_for_selector("#hits .hit")
    page.wait_for_load_state("networkidle")
    picture(page, "workspace-64-dark", whole=False)


def test_a_weighted_sum_of_many_columns(opened, planes):  # noqa: F811
    page = opened(planes)
    page.wait_for_selector("#inspector >> text=Weighs")
    picture(page, "workspace-planes", whole=False)


def test_a_data_set_of_twenty_classes(opened, twenty):  # noqa: F811
    page = opened(twenty)
    page.goto(page.base.partition("/models/")[0] + f"/datasets/{twenty.dataset_id}/")
    page.wait_for_load_state("networkidle")
    picture(page, "dataset-twenty")
    page.goto(page.base.partition("/models/")[0] + "/api/docs/")
    page.wait_for_load_state("networkidle")
    picture(page, "api-calls", whole=False)


def test_the_preview_of_sixty_columns(opened, twenty, tmp_path):  # noqa: F811
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 60))
    lines = [",".join([*(f"{x:.3f}" for x in row), "yes" if row[14] > row[24] else "no"]) for row in rows]
    file = tmp_path / "survey.csv"
    file.write_text("\n".join([",".join([*(LONG.format(j) for j in range(60)), "answer"]), *lines]) + "\n")
    page = opened(twenty)
    page.goto(page.base.partition("/models/")[0] + "/datasets/new/")
    page.set_input_files("#file", str(file))
    page.click("#upload-form button")
    page.wait_for_selector("text=Store data set")
    picture(page, "preview-sixty", whole=False)
