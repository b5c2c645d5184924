"""Import the tree of another program as a draft.

A separate process reads its file.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from django.db import transaction

from octweb.core.names import checked_name, name_of_file
from octweb.core.parsers import BodyTooLarge
from octweb.datasets import reader
from octweb.datasets.models import Dataset
from octweb.datasets.stored import path_of, refuse_changed
from octweb.demo.visits import refuse_more
from octweb.registry.lifecycle import actions
from octweb.registry.models import TreeModel

MAX_FILE_BYTES = 20_000_000
FORMS = {"": "found out", "lightgbm": "LightGBM", "pmml": "PMML", "octweb": "octweb"}


def import_tree(
    *,
    owner: Any,
    file: BinaryIO,
    source_name: str,
    dataset: Dataset,
    title: str = "",
    classes: str = "",
    form: str = "",
) -> TreeModel:
    """Store the tree of a LightGBM, PMML or octweb file as a draft of `owner`, counted on `dataset`.

    Claims are dropped. `classes` are names separated by commas, in the order of the source. Raises DataError, which
    names the unsuitable column, class or element, BodyTooLarge, Busy, Unprocessable for an unsuitable title, and
    Conflict for a demo visitor at the limit.
    """
    refuse_more(owner)
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise BodyTooLarge(
            f"The file is larger than {MAX_FILE_BYTES // 10**6} MB, the limit for a tree. Export a smaller tree."
        )
    name = checked_name(title, most=200) or name_of_file(source_name, most=200) or "model"
    rows = path_of(dataset.file)
    refuse_changed(dataset, rows)
    options = {
        "target": dataset.target,
        "name": name,
        "form": form,
        "classes": [word.strip() for word in classes.split(",")] if classes.strip() else [],
    }
    document = reader.bring(rows, content, options, dataset.reading)
    with transaction.atomic():
        refuse_more(owner)
        return actions.register(owner=owner, document=document, dataset=dataset, title=name)
