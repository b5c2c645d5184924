"""Build security headers for responses that bypass the middleware; imports nothing of Django's views."""

from __future__ import annotations

from csp.utils import build_policy
from django.conf import settings


def security_headers() -> dict[str, str]:
    """Return the headers that the middleware sets on every response."""
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": str(settings.SECURE_REFERRER_POLICY),
        "Cross-Origin-Opener-Policy": str(settings.SECURE_CROSS_ORIGIN_OPENER_POLICY),
        "X-Frame-Options": str(settings.X_FRAME_OPTIONS),
        "Content-Security-Policy": str(build_policy()),
    }
    if settings.SECURE_HSTS_SECONDS:
        headers["Strict-Transport-Security"] = f"max-age={settings.SECURE_HSTS_SECONDS}"
    return headers
