"""The places of the navigation in their order; an application adds its own by one line here."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse


@dataclass(frozen=True, kw_only=True)
class NavigationPage:
    """A page of the navigation; `other` names a page below its address that is a place of its own, `more` are addresses that lie in it."""

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
    """Label and address of each place that this installation has, and whether `path` lies in it."""
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
