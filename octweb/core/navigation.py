"""Define the entries of the navigation, in order."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse


@dataclass(frozen=True, kw_only=True)
class NavigationPage:
    """An entry of the navigation.

    `other` is a page below its URL that has its own entry. `more` are further URL prefixes that belong to this entry.
    """

    label: str
    page: str
    other: str = ""
    more: tuple[str, ...] = ()


PLACES = (
    NavigationPage(label="Data", page="datasets:list"),
    NavigationPage(
        label="Trees", page="registry:list", other="registry:waiting", more=("/runs/", "/experiments/", "/workbenches/")
    ),
    NavigationPage(label="Decisions", page="decisions", more=("/predictions/",)),
    NavigationPage(label="Review", page="registry:waiting"),
    NavigationPage(label="API", page="serving:guide"),
)


def places(path: str) -> list[dict[str, object]]:
    """Return label and URL of each entry of this installation, and whether `path` belongs to it."""
    links = []
    for place in PLACES:
        url = _address(place.page)
        if url:
            elsewhere = bool(place.other) and path.startswith(_address(place.other) or "\0")
            is_current = path.startswith((url, *place.more)) and not elsewhere
            links.append({"label": place.label, "url": url, "here": is_current})
    return links


def _address(page: str) -> str:
    try:
        return reverse(page)
    except NoReverseMatch:
        return ""
