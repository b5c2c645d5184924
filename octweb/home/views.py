"""The first page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def home(request: HttpRequest) -> HttpResponse:
    """Signed out: what this is. Signed in: what runs, what waits, what was last."""
    return render(request, "home/home.html")
