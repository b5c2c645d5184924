"""Cases and oracles of `test_demo.py` that other tests use, too."""

from __future__ import annotations

from django.test import Client

from octweb.demo.models import Visit

BEGIN = "/demo/begin/"


def visitor() -> tuple[Client, Visit]:
    """Return a browser that pressed the button, and its visit."""
    browser = Client()
    answer = browser.post(BEGIN)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    return browser, Visit.objects.latest("pk")
