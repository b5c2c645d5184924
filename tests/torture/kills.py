"""Campaign that kills worker, child and web server at random moments."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.torture.site import ENDED, LEASE, PATIENCE, Broken, Site


def kills(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Kill worker, child and web server at random moments while runs are requested."""
    asked: dict[str, str] = {}
    killed: Counter[str] = Counter()
    seen: dict[str, set[int]] = {}
    until = time.monotonic() + seconds
    strike = time.monotonic() + 1
    while time.monotonic() < until or len(asked) < amount:  # a slow machine must start all runs, too
        if len(asked) < amount:
            key = f"run-{len(asked)}"
            hard = draw.random() < 0.3
            status, answer = (
                site.new_run("hard", "odt", key, depth=3, time_limit=2)
                if hard
                else site.new_run("small", "cart", key, depth=3)
            )
            if status == 201:  # if a killed server gave no answer, the same key is sent again
                asked[key] = answer["id"]
        elif all(site.run(pk).get("status") in ENDED for pk in asked.values()):
            break
        for child in site.children():
            note_child(child, seen)
        if time.monotonic() >= strike and len(asked) - ended(site, asked) > 0:
            # A run fails if its child is killed. At most half of them are killed, so that the others survive on a slow
            # machine, too.
            killed[strike_one(site, draw, children=killed["child"] < amount // 2)] += 1
            strike = time.monotonic() + draw.uniform(0.5, 4)
        time.sleep(0.05)
    revive(site)
    site.wait(lambda: ended(site, asked) == len(asked), PATIENCE + 3 * LEASE + 4 * len(asked), "some run is stuck")
    runs = {pk: site.run(pk) for pk in asked.values()}
    outcome = Counter(run["status"] for run in runs.values())
    for pk, run in runs.items():
        if run["status"] == "succeeded" and not run["model"]:
            raise Broken(f"run {pk} succeeded without a model")
        if run["status"] == "failed" and not run["error"]:
            raise Broken(f"run {pk} failed without a reason")
    models = [run["model"] for run in runs.values() if run["model"]]
    if len(set(models)) != len(models) or site.count_of("models") != len(models):
        raise Broken(f"{len(models)} runs have a model, {site.count_of('models')} models are stored")
    if not outcome["succeeded"]:
        raise Broken(f"no run survived: {dict(outcome)}")
    return f"{amount} runs: {dict(outcome)}; killed: {dict(killed)}; attempts up to {max(r['attempt'] for r in runs.values())}"


def ended(site: Site, asked: dict[str, str]) -> int:
    return sum(site.run(pk).get("status") in ENDED for pk in asked.values())


def note_child(child: psutil.Process, seen: dict[str, set[int]]) -> None:
    """Raise Broken if a second process works on the same attempt of a run.

    Only processes with living supervisors count.
    """
    try:
        folder = Path(child.cwd())
        parent = child.ppid()
    except psutil.Error:
        return
    run = folder.parent.name
    attempt = folder.name
    if parent > 1:
        seen.setdefault(f"{run}/{attempt}", set()).add(child.pid)
        if len(seen[f"{run}/{attempt}"]) > 1:
            raise Broken(f"attempt {attempt} of run {run} has two processes")


def strike_one(
    site: Site, draw: random.Random, *, children: bool = True, kinds: tuple[str, ...] = (), word: str = "train"
) -> str:
    """Kill something, and restart it if nothing else does. Return what was killed, or "nobody".

    `children` allows the killing of children.
    """
    victim = draw.choice(kinds or ["worker", "web", *(["child", "child"] if children else [])])
    if victim == "child":
        living = site.children(word)
        if not living:
            return "nobody"
        draw.choice(living).kill()
    elif victim == "worker":
        process = draw.choice(site.workers)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        site.workers.remove(process)
        site.start_worker()
    elif site.web is not None:
        os.killpg(site.web.pid, signal.SIGKILL)
        site.web.wait()
        site.start_web()
    return victim


def revive(site: Site) -> None:
    if site.call("GET", "/healthz")[0] != 200:
        site.start_web()
    while len(site.workers) < site.count:
        site.start_worker()
