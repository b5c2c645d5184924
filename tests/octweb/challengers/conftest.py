"""Fixtures of challengers: a smaller version of an approved model as its challenger, and a separate spool."""

from __future__ import annotations

import pytest

from octweb.challengers import actions
from octweb.core import tally
from octweb.registry.lifecycle import actions as lifecycle
from octweb.registry.models import Recording
from tests.octweb.decisions.conftest import spool  # noqa: F401
from tests.octweb.small_models import trained


@pytest.fixture(autouse=True)
def _no_counts():
    tally.drain()


@pytest.fixture
def smaller(register, model):
    """Provide version 2 of the model, a tree of depth 1."""
    return register(document=trained("cart", depth=1))


@pytest.fixture
def challenge(approved, smaller, owner):
    """Provide a challenge of a model for which octweb stores only counts."""
    return actions.name_challenger(approved, smaller, by=owner)


@pytest.fixture
def recorded_challenge(model, smaller, staff, owner):
    """Provide a challenge of a model whose answers are recorded."""
    lifecycle.ask_for_approval(model, by=model.owner)
    recorded = lifecycle.approve(model, by=staff, recording=Recording.FULL)
    return actions.name_challenger(recorded, smaller, by=owner)
