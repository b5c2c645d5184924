"""The places of the navigation in their order; an application adds its own by one line here."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse


@dataclass(frozen=True, kw_only=True)
class NavigationPage:
    """A page of the navigation; `other` names a page below its address that is a place of its own."""

    label: str
    page: str
    other: str = ""


PLACES = (
    NavigationPage(label="Data sets", page="datasets:list"),
    NavigationPage(label="Runs", page="runs:list"),
    NavigationPage(label="Experiments", page="experiments:list"),
    NavigationPage(label="Workbenches", page="workbench:list"),
    NavigationPage(label="Models", page="registry:list", other="registry:compare"),
    NavigationPage(label="Compare", page="registry:compare"),
    NavigationPage(label="Predicted files", page="batch:list"),
    NavigationPage(label="API", page="serving:guide"),
)


def places(path: str) -> list[dict[str, object]]:
    """Label and address of each place that this installation has, and whether `path` lies in it."""
    found = []
    for place in PLACES:
        url = _address(place.page)
        if url:
            elsewhere = bool(place.other) and path.startswith(_address(place.other) or "\0")
            found.append({"label": place.label, "url": url, "here": path.startswith(url) and not elsewhere})
    return found


def _address(page: str) -> str:
    try:
        return reverse(page)
    except NoReverseMatch:
        return ""
