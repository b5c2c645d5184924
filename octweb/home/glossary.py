"""Show the glossary page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from octweb.core.words import GLOSSARY


@login_required
@require_GET
def glossary_page(request: HttpRequest) -> HttpResponse:
    """Show all glossary words in alphabetical order."""
    return render(request, "home/glossary.html", {"words": sorted(GLOSSARY.items(), key=lambda item: item[0].lower())})
