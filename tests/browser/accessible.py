"""Run axe-core on a page and report violations. axe.min.js is axe-core 4.14.1 as published (MPL 2.0)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

AXE = Path(__file__).with_name("axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Any) -> list[str]:
    """Return the rule, the element and the necessary correction of each violation."""
    page.wait_for_load_state()  # after a click, the page may still be loading
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    evaluation = page.evaluate(
        "rules => window.axe.run(document, { runOnly: rules, resultTypes: ['violations'], preload: false })", RULES
    )
    return [
        f"{v['id']}: {node['html'][:160]}: {node['failureSummary'][:200]}"
        for v in evaluation["violations"]
        for node in v["nodes"]
    ]
