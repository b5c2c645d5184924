"""Kill child, worker and web server in the middle of editing sessions."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from tests.torture.kills import revive, strike_one
from tests.torture.site import LEASE, PATIENCE, Broken, Site

WISHES = ("forbid root colour", "forbid y width", "forbid n height", "depth root 2", "depth y 1", "depth n 1")
BENCHES = 2
KINDS = ("child", "worker", "web")


def editing(site: Site, draw: random.Random, amount: int, seconds: float) -> str:
    """Kill processes at random moments of editing sessions, each a random time after an edit.

    There are `amount` kills, but at most 50.
    """
    amount = min(amount, 50)
    until = time.monotonic() + seconds
    benches = [_open(site) for _ in range(BENCHES)]
    asked: dict[str, dict[int, list[str]]] = {bench: {} for bench in benches}
    killed: Counter[str] = Counter()
    unanswered = 0
    while sum(killed.values()) < amount and time.monotonic() < until:
        bench = draw.choice(benches)
        wishes = sorted(draw.sample(WISHES, draw.randint(1, 4)))
        victim = draw.choice(KINDS)
        with ThreadPoolExecutor(1) as caller:  # in a thread, because the web server may die while it answers
            call = caller.submit(_post, site, f"/api/v1/workbenches/{bench}/edits/", {"wishes": wishes})
            time.sleep(draw.uniform(0, 0.06 if victim == "web" and draw.random() < 0.5 else 2.5))
            _two_processes(site, benches)
            struck = strike_one(site, draw, kinds=(victim,), word="edit")
            answer = call.result()
        unanswered += _note(site, bench, wishes, answer, asked[bench])
        if struck != "nobody":
            killed[struck] += 1
    revive(site)
    for bench in benches:
        site.wait(
            lambda b=bench: all(s["state"] in ("done", "failed") for s in _steps(site, b)),
            PATIENCE + 3 * LEASE,
            f"some step of workbench {bench} is stuck",
        )
    return _judge(site, asked, killed, unanswered)


def _judge(site: Site, asked: dict[str, dict[int, list[str]]], killed: Counter[str], unanswered: int) -> str:
    """Raise Broken unless each edit exists once and equal constraints have equal answers."""
    objectives: dict[tuple[str, ...], set[float]] = {}
    states: Counter[str] = Counter()
    extra = 0
    for bench, wanted in asked.items():
        steps = _steps(site, bench)
        stored = {step["number"]: step for step in steps}
        if len(stored) != len(steps):
            raise Broken(f"workbench {bench} has two steps of one number")
        for number, wishes in wanted.items():
            if number not in stored or stored[number]["wishes"] != wishes:
                raise Broken(f"step {number} of workbench {bench} lost its wishes {wishes}")
        extra += len(stored) - 1 - len(wanted)  # the first step is made when the workbench is opened
        now = site.call("GET", f"/api/v1/workbenches/{bench}/")[1]["step"]
        if now["number"] != max(stored) or now["wishes"] != wanted.get(max(stored), []):
            raise Broken(f"workbench {bench} does not stand at the last edit")
        for step in steps:
            states[step["state"]] += 1
            if step["state"] == "failed" and "times on this step" not in step["error"]:
                raise Broken(f"step {step['number']} failed: {step['error']}")
            if step["state"] == "done":
                found = step["result"].get("objective")
                objectives.setdefault(tuple(step["wishes"]), set()).add(found)
    if extra:
        raise Broken(f"{extra} steps are stored that nobody asked for")
    different = {w: o for w, o in objectives.items() if len(o) != 1 or None in o}
    if different:
        raise Broken(f"equal wishes have different answers: {different}")
    if not states["done"]:
        raise Broken("no edit was answered")
    return (
        f"{sum(killed.values())} kills: {dict(killed)}; {sum(states.values())} steps: {dict(states)}; "
        f"{len(objectives)} sets of wishes; {unanswered} edits whose answer was cut off"
    )


def _post(site: Site, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    return site.call("POST", path, json.dumps(body).encode(), Content_Type="application/json")


def _open(site: Site) -> str:
    body = {"dataset": site.datasets["small"], "method": "exact", "parameters": {"depth": 3, "leaf_penalty": 0.01}}
    status, answer = _post(site, "/api/v1/workbenches/", body)
    if status != 201:
        raise Broken(f"a workbench is refused: {status} {answer}")
    return str(answer["id"])


def _note(site: Site, bench: str, wishes: list[str], answer: tuple[int, Any], asked: dict[int, list[str]]) -> int:
    """Record an edit, and return 1 if its response was cut off, otherwise 0.

    After a cut-off response the client checks whether the edit was stored, and sends it again if not.
    """
    cut = 0
    while not answer[0]:
        cut = 1
        revive(site)
        now = site.call("GET", f"/api/v1/workbenches/{bench}/")[1]["step"]
        if now["number"] > max(asked, default=1) and now["wishes"] == wishes:
            answer = 201, now
        else:
            answer = _post(site, f"/api/v1/workbenches/{bench}/edits/", {"wishes": wishes})
    if answer[0] != 201:
        raise Broken(f"an edit is refused: {answer}")
    asked[answer[1]["number"]] = wishes
    return cut


def _steps(site: Site, bench: str) -> list[dict[str, Any]]:
    """Return all steps of a workbench."""
    status, answer = site.call("GET", f"/api/v1/workbenches/{bench}/edits/")
    if status != 200 or not answer:
        raise Broken(f"the steps of workbench {bench} cannot be read: {status}")
    return list(answer)


def _two_processes(site: Site, benches: list[str]) -> None:
    """Raise Broken if two processes with living supervisors serve one workbench."""
    for bench in benches:
        serving = 0
        for child in site.children("edit"):
            try:
                serving += bench in child.cwd() and child.ppid() > 1
            except psutil.Error:
                continue
        if serving > 1:
            raise Broken(f"{serving} processes serve workbench {bench}")
