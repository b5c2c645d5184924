"""A web host without a worker stores its records by `manage.py decisions collect --every`."""

from __future__ import annotations

import os
import signal

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from octweb.decisions import collecting
from octweb.decisions.management.commands import decisions


@pytest.fixture(autouse=True)
def _handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_collect_every_goes_on_after_error_until_sigterm(monkeypatch, caplog):
    calls = []

    def collect_due():
        calls.append(len(calls))
        if len(calls) == 1:
            raise OperationalError("the server closed the connection")
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(collecting, "collect_due", collect_due)
    monkeypatch.setattr(decisions, "replay_daily", lambda now: None)
    call_command("decisions", "collect", every=0.001)
    assert len(calls) == 4  # once more after the signal, for what was written meanwhile
    assert "does not answer" in caplog.text


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_collect_every_without_positive_seconds_is_refused(seconds):
    with pytest.raises(CommandError, match="above 0"):
        call_command("decisions", "collect", every=seconds)
