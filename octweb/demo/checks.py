"""Check for settings that are unsafe in a public demo."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

LOCAL = {"localhost", "127.0.0.1", "[::1]", "testserver"}
LONG_TRAINING_SECONDS = 600


def safe(**_: Any) -> list[CheckMessage]:
    """Return errors and warnings about the settings of a demo, or [] if OCTWEB_DEMO is off."""
    if not settings.DEMO:
        return []
    hosts = set(settings.ALLOWED_HOSTS)
    messages: list[CheckMessage] = []
    if settings.DEBUG:
        messages.append(
            Error(
                "OCTWEB_DEMO=1 with OCTWEB_DEBUG=1 would show every visitor settings and code in error pages.",
                hint="Unset OCTWEB_DEBUG.",
                id="octweb.demo.E001",
            )
        )
    if "*" in hosts:
        messages.append(
            Error(
                "OCTWEB_DEMO=1 needs the names of its hosts; OCTWEB_ALLOWED_HOSTS is '*'.",
                hint="Set OCTWEB_ALLOWED_HOSTS to the name under which the demo is reached.",
                id="octweb.demo.E002",
            )
        )
    if settings.HTTPS and settings.PROXIES < 1:
        messages.append(
            Error(
                "OCTWEB_DEMO=1 with OCTWEB_HTTPS=1 and OCTWEB_PROXIES=0: every visitor would have the address of your "
                "proxy. The limits for each address would then apply to all visitors together.",
                hint="Set OCTWEB_PROXIES to the number of your proxies in front of octweb.",
                id="octweb.demo.E003",
            )
        )
    if not settings.HTTPS and not hosts <= LOCAL:
        messages.append(
            Error(
                "OCTWEB_DEMO=1 serves other hosts than this one without OCTWEB_HTTPS=1: session cookies, the "
                "administrator's too, could be read on the way.",
                hint="Serve the demo behind TLS and set OCTWEB_HTTPS=1, or leave OCTWEB_ALLOWED_HOSTS as it is.",
                id="octweb.demo.E004",
            )
        )
    for name in ("DEMO_VISITORS", "DEMO_VISITORS_PER_ADDRESS", "DEMO_ITEMS"):
        if getattr(settings, name) < 1:
            messages.append(
                Error(
                    f"OCTWEB_{name} is {getattr(settings, name)}; it must be at least 1.",
                    hint=f"Unset OCTWEB_{name}, or OCTWEB_DEMO if no visitor may come in.",
                    id="octweb.demo.E005",
                )
            )
    if settings.MAX_TRAINING_SECONDS > LONG_TRAINING_SECONDS:
        messages.append(
            Warning(
                f"OCTWEB_DEMO=1 lets each visitor train for {settings.MAX_TRAINING_SECONDS:,} s at a time.",
                hint=f"Set OCTWEB_MAX_TRAINING_SECONDS to {LONG_TRAINING_SECONDS} or less; 60 is the default of a demo.",
                id="octweb.demo.W001",
            )
        )
    return messages


def refuse_unsafe() -> None:
    """Raise ImproperlyConfigured with the first error. Web processes call this, because they run no system checks."""
    for problem in safe():
        if problem.is_serious():
            raise ImproperlyConfigured(f"{problem.msg} {problem.hint}")
