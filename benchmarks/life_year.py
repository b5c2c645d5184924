"""Simulate a year of decisions on a fresh installation, with an alarm.

    python benchmarks/life_year.py --folder EMPTY_FOLDER [--data heloc.csv] [--rows 55]
    OCTWEB_DATA_DIR=EMPTY_FOLDER python manage.py serve

The script trains CART of depth 2 on three quarters of the table and approves the model as of 364 days ago. For each day
it predicts rows drawn from the last quarter, and counts them as API calls do. In the second half of the year rows of
the second largest leaf occur more often. Then it evaluates the counts and prints the sentences of the page Life. The
folder gets a user `year` with the password `a year of decisions`: never use it on a server.
"""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from common import FOLDER

DAYS = 364
CHANGE_DAY = 190
TARGET = "class"
SEED = 47
GROWTH = 1.7  # the weight of one leaf's rows grows by this factor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=FOLDER / "heloc.csv")
    parser.add_argument("--rows", type=int, default=55, help="decisions a day")
    options = parser.parse_args()
    if options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty; name an empty folder.")
    os.environ |= {"OCTWEB_DATA_DIR": str(options.folder.resolve()), "DJANGO_SETTINGS_MODULE": "octweb.settings"}
    import django

    django.setup()
    replay(options.data, options.rows)


def replay(data: Path, rows: int) -> None:
    """Simulate the year of a model.

    Counts its decisions, evaluates them, and prints the alarms and sentences of its page.
    """
    from django.core.management import call_command
    from django.utils import timezone

    from octweb.life.actions import look_now
    from octweb.life.record import life_record

    call_command("migrate", interactive=False, verbosity=0)
    model = approved_model(data)
    answer_year(model, rows)
    look_now(model)
    record = life_record(model, 365, timezone.now())
    print(f"{record['decisions']:,} decisions; the page is /models/{model.pk}/?mode=life")
    for alarm in record["alarms"]:
        print(alarm["sentence"], alarm["when"])
    for sentence in record["sentences"]:
        print(sentence)


def approved_model(data: Path):
    """Train a model of the table, approve it, and return it with an approval dated a year ago."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from octweb.datasets import actions as datasets
    from octweb.registry.lifecycle import actions as registry
    from octweb.registry.models import ReviewEvent, State
    from trainer.data.reader import load
    from trainer.training.run import TrainRequest, train

    user = get_user_model().objects.create_superuser("year", password="a year of decisions")
    with data.open("rb") as stream:
        dataset = datasets.create(owner=user, file=stream, source_name=data.name, target=TARGET)
    table, labels, _ = load(data, target=TARGET)
    request = TrainRequest(
        table=table, labels=labels, method="cart", parameters={"depth": 2}, test_share=0.25, name="Year"
    )
    model = registry.register(owner=user, document=train(request).model.to_json(), dataset=dataset, title="A year")
    registry.approve(registry.ask_for_approval(model, by=user), by=user, reason="a simulated year")
    ReviewEvent.objects.filter(after=State.APPROVED).update(at=timezone.now() - timedelta(days=DAYS))
    model.refresh_from_db()
    return model


def answer_year(model, rows: int) -> None:
    """Sample held-out rows, and count the model's answers to them, day by day up to yesterday."""
    from octweb.core.tally import SECONDS_OF_DAY, Key
    from octweb.life.counting import add_counts
    from octweb.registry.document.model_files import model_file
    from octweb.registry.document.rows import rows_of

    tree = model_file(model).tree
    training_rows = rows_of(model)
    matrix = training_rows.matrix[training_rows.unseen]
    leaves = tree.apply(matrix)
    grown = np.argsort(np.bincount(leaves))[-2]
    weights = np.where(leaves == grown, GROWTH, 1.0)
    rng = np.random.default_rng(SEED)
    today = int(datetime.now(UTC).timestamp()) // SECONDS_OF_DAY
    for d in range(DAYS):
        likely = weights / weights.sum() if d >= CHANGE_DAY else None
        sampled = rng.choice(len(matrix), rows, p=likely)
        day = today - DAYS + d
        counts = {"rows": {str(leaf): int((leaves[sampled] == leaf).sum()) for leaf in np.unique(leaves[sampled])}}
        for kind, numbers in (counts | tree.unusual_cells(matrix[sampled])).items():
            add_counts({Key(str(model.pk), "v1", day, kind, name): number for name, number in numbers.items()})


if __name__ == "__main__":
    main()
