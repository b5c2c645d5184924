"""Cases and oracles of `test_costs.py` that other tests use, too."""

from __future__ import annotations

import json

from django.core.management import call_command


def called(capsys, command, *arguments):
    """Run a command and return its output."""
    call_command(command, *map(str, arguments))
    return capsys.readouterr().out


def train(capsys, data, *arguments):
    out = called(capsys, "train", data, "--target=class", "--method=exact", "--depth=2", *arguments)
    return json.loads(out.strip().splitlines()[-1]) if "--json" in arguments else out


def defaults_of(form):
    """Return what a browser sends for an untouched form without the table of costs."""
    fields = form.fields.items()
    return {n: f.prepare_value(f.initial) for n, f in fields if f.initial is not None and n != "p_costs"}
