"""All interfaces look up the words of ranks, and take no number for a rank."""

from __future__ import annotations

import pandas as pd
import pytest

import trainer
from octweb.registry.lifecycle import actions
from tests.octweb.serving.frames import REFUSED, Doors
from trainer.data.parsing import ParsingChoices
from trainer.data.reader import load
from trainer.training.run import TrainRequest, save, train
from trainer.tree.file import read_model

pytestmark = pytest.mark.django_db
NAMES = (
    "estimator", "csv_file", "parquet_file", "rows", "columns", "tensors", "tensors_in_base64", "csv_body", "arrow_body",
)  # fmt: skip
KNOWN = {
    "low<mid<high": [["MID", " High", "low"], ["mid", None, "low"], ["mid", "-", "low"]],
    "2<10<1": [[10, 1, 2], ["10.0", "1e0", "2"]],
}
UNKNOWN = {"low<mid<high": [2, True, "medium"], "2<10<1": [3, "low"]}


@pytest.fixture
def ranked_doors(owner, staff, client_of, tmp_path):
    """Provide a function that trains on ranks in this order and returns the interfaces of the model."""

    def train_on(order):
        words = order.split("<")
        frame = pd.DataFrame({"c": [words[i % 3] for i in range(60)], "n": [i / 2 for i in range(60)]})
        frame.assign(y=["no" if word == words[0] else "yes" for word in frame["c"]]).to_csv(
            tmp_path / "t.csv", index=False
        )
        table, labels, _ = load(tmp_path / "t.csv", target="y", given=ParsingChoices(kinds={"c": f"ranks:{order}"}))
        save(
            train(TrainRequest(table=table, labels=labels, method="cart", parameters={"depth": 2})).model,
            tmp_path / "model.json",
        )
        document = read_model(tmp_path / "model.json").to_json()
        model = actions.register(owner=owner, document=document, dataset=None, title="Ranks")
        actions.ask_for_approval(model, by=owner)
        approved = actions.approve(model, by=staff, reason="Tested.")
        return Doors(trainer.load(tmp_path / "model.json"), approved, client_of(owner), tmp_path)

    return train_on


def leaves_at(doors, cells):
    frame = pd.DataFrame({"c": cells, "n": [1.0] * len(cells)})
    return {name: getattr(doors, name)(frame) for name in NAMES}


@pytest.mark.parametrize("order", KNOWN)
def test_ranks_mean_the_same_in_every_interface(order, ranked_doors):
    doors = ranked_doors(order)
    no, yes = (leaves_at(doors, [order.split("<")[place]])["estimator"][0] for place in (0, 1))
    assert no != yes
    for cells in KNOWN[order]:
        assert leaves_at(doors, cells) == {name: [yes, yes, no] for name in NAMES}, cells
    for cell in UNKNOWN[order]:
        assert leaves_at(doors, [cell]) == dict.fromkeys(NAMES, REFUSED), cell
