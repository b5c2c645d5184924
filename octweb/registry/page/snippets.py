"""Write example calls of a model for curl and Python."""

from __future__ import annotations

import json
import shlex
from typing import Any


def curl(url: str, row: dict[str, Any]) -> str:
    """Return a shell command. Its body is quoted, so names may contain quotes."""
    body = json.dumps({"rows": [row]}, ensure_ascii=False)
    return (
        f"curl {shlex.quote(url)} \\\n"
        '  -H "Authorization: Token $OCTWEB_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(body)}"
    )


def python(url: str, row: dict[str, Any]) -> str:
    """Return a program that needs only Python's standard library."""
    return f"""import json, os, urllib.request

rows = [{row!r}]
request = urllib.request.Request(
    {url!r},
    data=json.dumps({{"rows": rows}}).encode(),
    headers={{
        "Authorization": "Token " + os.environ["OCTWEB_TOKEN"],
        "Content-Type": "application/json",
    }},
)
with urllib.request.urlopen(request) as answer:
    for row in json.load(answer)["predictions"]:
        print(row["label"], row["probabilities"])
"""
