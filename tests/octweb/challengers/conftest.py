"""An approved model, a smaller version of it as challenger, and a spool of their own."""

from __future__ import annotations

import pytest

from octweb.challengers import actions
from octweb.core import tally
from octweb.core.spool import WRITER
from octweb.decisions import collecting
from octweb.registry.lifecycle import actions as lifecycle
from octweb.registry.models import Recording
from tests.octweb.small_models import trained


@pytest.fixture(autouse=True)
def _no_counts():
    tally.drain()


@pytest.fixture(autouse=True)
def spool(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    collecting.SCHEMAS.clear()
    WRITER.close()
    WRITER.forget()
    yield
    WRITER.close()
    WRITER.forget()


@pytest.fixture
def smaller(register, model):
    """Version 2 of the model: one question."""
    return register(document=trained("cart", depth=1))


@pytest.fixture
def challenge(approved, smaller, owner):
    """A challenge of a model with counts only."""
    return actions.name_challenger(approved, smaller, by=owner)


@pytest.fixture
def recorded_challenge(model, smaller, staff, owner):
    """A challenge of a model whose answers are recorded."""
    lifecycle.ask_for_approval(model, by=model.owner)
    recorded = lifecycle.approve(model, by=staff, recording=Recording.FULL)
    return actions.name_challenger(recorded, smaller, by=owner)
