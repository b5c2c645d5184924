"""Campaign in which runs preempt an experiment on all workers, while workers and their children are killed."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import datetime
from typing import Any

from tests.torture.kills import ended, revive, strike_one
from tests.torture.site import ENDED, LEASE, PATIENCE, SHORT, Broken, Site

FIT = 1.0  # seconds of one fit
FOLDS = 4
VICTIMS = ("child", "worker")  # with more deaths than these, a candidate may rightly end
SLACK = 30.0  # seconds in addition to fits and leases, for slow machines


def passing(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Request quick runs one after the other.

    Every run must end soon, and the experiment must end with all its folds.
    """
    experiment = _experiment(site, 2 * site.count)
    asked = {}
    killed: Counter[str] = Counter()
    until = time.monotonic() + seconds
    while len(asked) < min(amount, 20) and time.monotonic() < until and not _done(site, experiment):
        status, answer = site.new_run("small", "cart", f"pass-{len(asked)}", depth=2)
        if status == 201:
            asked[f"pass-{len(asked)}"] = answer["id"]
        time.sleep(draw.uniform(1, 3))
        if killed.total() < len(VICTIMS) and len(asked) > 1:
            victim = strike_one(site, draw, kinds=VICTIMS[killed.total() :][:1])
            killed[victim] += victim != "nobody"
    revive(site)
    patience = PATIENCE + 3 * LEASE + 4 * len(asked)
    site.wait(lambda: ended(site, asked) == len(asked), patience, "some run is stuck")
    site.wait(lambda: _done(site, experiment), patience, "the experiment is stuck")
    return _judged(site, experiment, [site.run(pk) for pk in asked.values()], killed, by_the_clock=seconds > SHORT)


def _experiment(site: Site, candidates: int) -> str:
    """Start an experiment with so many candidates, whose fits all last until their limit."""
    trials = [{"method": "odt", "parameters": {"depth": 3, "time_limit": FIT + i / 1000}} for i in range(candidates)]
    body = {"dataset": site.datasets["hard"], "candidates": trials, "folds": FOLDS, "test_share": 0.2, "nested": False}
    content = json.dumps(body).encode()
    status, answer = site.call("POST", "/api/v1/experiments/", content, Content_Type="application/json")
    if status != 201:
        raise Broken(f"an experiment is refused: {status} {answer}")
    return str(answer["id"])


def _lines(site: Site, experiment: str) -> list[dict[str, Any]]:
    status, answer = site.call("GET", f"/api/v1/experiments/{experiment}/")
    return answer["candidates"] if status == 200 else []


def _done(site: Site, experiment: str) -> bool:
    lines = _lines(site, experiment)
    return bool(lines) and all(line["status"] in ENDED for line in lines)


def _judged(
    site: Site, experiment: str, runs: list[dict[str, Any]], killed: Counter[str], *, by_the_clock: bool
) -> str:
    lines = _lines(site, experiment)
    for line in lines:
        if line["status"] != "succeeded" or line["fits_done"] != FOLDS:
            raise Broken(f"a candidate did not end with all its folds: {line['status']}, {line['error']}")
    waits = [
        (datetime.fromisoformat(r["started"]) - datetime.fromisoformat(r["created"])).total_seconds() for r in runs
    ]
    longest = max(waits, default=0.0)
    allowed = FIT + LEASE * len(VICTIMS) + SLACK
    if by_the_clock and longest > allowed:
        raise Broken(f"a run waited {longest:.0f} s for fits of {FIT:.0f} s")
    if any(run["status"] != "succeeded" for run in runs):
        raise Broken(f"a run did not succeed: {Counter(run['status'] for run in runs)}")
    return f"{len(runs)} runs passed {len(lines)} candidates; longest wait {longest:.1f} s; killed: {dict(killed)}"
