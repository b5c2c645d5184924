"""Attributes, classes and ids that pages, scripts and styles share have a writer and a reader."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.styles_cases import sources

# Django's administration writes these parts, and our style changes them.
OF_DJANGO = {"readonly", "flex-container", "errornote"}
# Plotly writes these. `field-…` is a row of Django's administration.
OF_OTHERS = re.compile(r"^(svg-container|main-svg|js-plotly-plot|plotly|modebar.*|field-.*|hoverlayer|drag.*)$")
# Programs that show a notebook read these.
FOR_OTHERS = {"octweb-tree"}
WRITTEN = re.compile(r"(?<![\w\[-])data-([a-z][a-z-]*)(?=[\s=>\"'{/])")
DATASET = re.compile(r"(?<!self\.)\bdataset\.([a-z][a-zA-Z]*)")
CLASSES = re.compile(r'class=\\?"((?:\{%.*?%\}|\{\{.*?\}\}|[^"])*?)\\?"', re.S)
GAP = "\0"
VALUE = r'\\?"((?:\{%.*?%\}|\{\{.*?\}\}|[^"])*?)\\?"'
TAGS = re.compile(r"<([a-z][a-z0-9]*)\b((?:\{%.*?%\}|\{\{.*?\}\}|[^<>])*)>", re.S)
ID = re.compile(rf"(?<![\w-])id={VALUE}", re.S)
POINTERS = re.compile(
    rf"(?<![\w-])(?:for|form|list|popovertarget|aria-(?:labelledby|describedby|controls|owns|activedescendant))={VALUE}",
    re.S,
)
# Htmx matches the elements of a refreshed part by id. It keeps the focus, and scripts keep what is open.
SELECTORS = re.compile(r"(?:querySelector(?:All)?|closest|matches)\(([^;\n]*?)\)")
FOUND_AGAIN = re.compile(r"hx-preserve|hx-swap-oob")
KEEPS_STATE = {"a", "button", "details", "input", "select", "summary", "textarea"}
# Django writes these: forms begin the ids of their fields with "id_".
IDS_OF_DJANGO = re.compile(r"id_.*|changelist|result_list")
# Django describes a field by the elements with these ids.
DESCRIBES = {f"{GAP}_error", f"{GAP}_helptext"}
# Parts of a kept dossier, which a reader's link may name, and cards that tests find by their ids.
OF_DOSSIER = {"claim", "clauses", "data", "ends", "performance", "review", "since", "stability", "use", "versions"}
OF_TESTS = {"coefficient-frontier", "costs", "leaf-frontier", "optimal-trees", "reach", "roc", "share"}
LANDMARKS = OF_DOSSIER | OF_TESTS


def kebab(name: str) -> str:
    """Return the attribute of a member of `dataset`, without "data-"."""
    return re.sub(r"[A-Z]", lambda letter: f"-{letter[0].lower()}", name)


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|url\([^)]*\)", " ", text, flags=re.S)


def selectors(style: str) -> str:
    return " ".join(re.findall(r"([^{}]+)\{", without_comments(style)))


def split_by_kind(texts: dict[str, str]) -> tuple[str, str, str]:
    """Return the text of all styles, of all scripts, and of all pages with the code that writes pages."""
    styles = "\n".join(text for name, text in texts.items() if name.endswith(".css"))
    scripts = "\n".join(text for name, text in texts.items() if name.endswith(".js"))
    pages = "\n".join(text for name, text in texts.items() if not name.endswith((".css", ".js")))
    inline = "\n".join(re.findall(r"<script[^>]*>(.*?)</script>", pages, re.S))
    return styles, scripts + inline, pages


def attributes_without_reader(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = {kebab(name) for name in DATASET.findall(scripts)}
    read |= set(re.findall(r"data-([a-z][a-z-]*)", scripts + selectors(styles)))
    read |= set(re.findall(r"\[data-([a-z][a-z-]*)\]", pages))  # htmx finds its targets by these
    return set(WRITTEN.findall(pages)) - read


def attributes_without_writer(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = {kebab(name) for name in DATASET.findall(scripts)}
    read |= set(re.findall(r"\[data-([a-z][a-z-]*)", scripts + selectors(styles)))
    written = set(WRITTEN.findall(pages)) | set(re.findall(r"[\"']data-([a-z][a-z-]*)[\"']", scripts + pages))
    written |= {kebab(name) for name in re.findall(r"dataset\.([a-z][a-zA-Z]*)\s*=(?!=)", scripts)}
    return read - written


def written_classes(pages: str) -> set[str]:
    """Return the classes in pages. A class that a template completes ends in GAP."""
    found: set[str] = set()
    for value in CLASSES.findall(pages):
        plain = re.sub(r"\{\{.*?\}\}", GAP, re.sub(r"\{%.*?%\}", " ", value, flags=re.S), flags=re.S)
        found |= {word for word in plain.split() if re.fullmatch(rf"[a-zA-Z_][\w-]*{GAP}?", word)}
    return found


def named(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def classes_without_reader(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = set(re.findall(r"\.([a-zA-Z_][\w-]*)", selectors(styles)))
    found = {name for name in written_classes(pages) if GAP not in name and name not in read}
    return {name for name in found if not named(scripts, name)} - OF_DJANGO - FOR_OTHERS


def classes_without_writer(texts: dict[str, str]) -> set[str]:
    styles, scripts, pages = split_by_kind(texts)
    read = set(re.findall(r"\.([a-zA-Z_][\w-]*)", re.sub(r'"[^"]*"', "", selectors(styles))))
    begun = tuple(name.rstrip(GAP) for name in written_classes(pages) if name.endswith(GAP))
    begun += tuple(re.findall(r"[`\"' ]([a-z][\w-]*)\$\{", scripts))
    unwritten = {name for name in read if not named(scripts + pages, name) and not name.startswith(begun)}
    return {name for name in unwritten if not OF_OTHERS.match(name)} - OF_DJANGO


def patterns(value: str) -> set[str]:
    """Return the ids in the value of an attribute. GAP represents the parts that a template or a script completes."""
    plain = re.sub(r"\{%.*?%\}", " ", value, flags=re.S)
    plain = re.sub(r"\{\{.*?\}\}|\$\{.*?\}|\$\{$", GAP, plain, flags=re.S)
    return {word for word in plain.split() if re.fullmatch(rf"[a-zA-Z{GAP}][\w{GAP}-]*", word) and word.strip(GAP)}


def patterns_in(texts: list[str]) -> set[str]:
    return set().union(*(patterns(text) for text in texts))


def ids_in_pages(pages: str) -> tuple[set[str], set[str]]:
    """Return the ids of all elements, and those by which htmx finds an element again."""
    written = patterns_in(re.findall(r'json_script:"([\w-]+)"', pages))
    kept: set[str] = set()
    for tag, attributes in TAGS.findall(pages):
        own = patterns_in(ID.findall(attributes))
        written |= own
        if tag in KEEPS_STATE or FOUND_AGAIN.search(attributes):
            kept |= own
    return written, kept


def ids_in_scripts(scripts: str) -> set[str]:
    return patterns_in(re.findall(r"\bid(?::|\s=)\s*[`\"]([^`\"\n]+)[`\"]", scripts))


def flat(found: list[str] | list[tuple[str, ...]]) -> list[str]:
    return [name for item in found for name in ([item] if isinstance(item, str) else item)]


def read_ids(texts: dict[str, str]) -> set[str]:
    """Return the ids that pages, scripts and styles certainly refer to."""
    styles, scripts, _ = split_by_kind(texts)
    pages = only_pages(texts)
    found = POINTERS.findall(pages)
    found += re.findall(r"(?:href|action|hx-[a-z-]+)=\"[^\"\n]*?#([^\"\s]+?)\"", pages)
    found += re.findall(r"#([a-zA-Z_][\w-]*)", selectors(styles))
    found += flat(re.findall(r"getElementById\([\"'`]([^\"'`]+)[\"'`]\)|\.id\s*[!=]==?\s*\"([^\"]+)", scripts))
    found += re.findall(r"(?:\bfor|\"aria-(?:describedby|controls)\"):\s*[\"`]([^\"`]+)[\"`]", scripts)
    found += flat([re.findall(r"#([a-zA-Z_][\w-]*(?:\$\{)?)", text) for text in SELECTORS.findall(scripts)])
    return patterns_in(found)


def perhaps_read_ids(texts: dict[str, str]) -> set[str]:
    """Return what may also be a reference: values of data attributes, URLs that views make, and fills of pictures."""
    everything = "\n".join(texts.values())
    found = re.findall(r"\bdata-[a-z-]+=\"#?([\w-]+)\"", everything)
    found += re.findall(r"[\"'][^\"'\s]*#([a-z][\w-]*)[\"']", everything)
    found += re.findall(r"url\(#([^)]+)\)", everything)
    found += re.findall(r"\"aria-[a-z]+\", \"([\w -]+)\"", everything)
    return patterns_in(found)


def only_pages(texts: dict[str, str]) -> str:
    return "\n".join(text for name, text in texts.items() if name.endswith(".html"))


def matched(name: str, others: set[str]) -> bool:
    """Return whether another pattern can match the same id."""

    def fits(pattern: str, text: str) -> bool:
        return re.fullmatch(".+".join(map(re.escape, pattern.split(GAP))), text) is not None

    return any(fits(other, name.replace(GAP, "x")) or fits(name, other.replace(GAP, "x")) for other in others)


def ids_without_reader(texts: dict[str, str]) -> set[str]:
    _, scripts, _ = split_by_kind(texts)
    written, kept = ids_in_pages(only_pages(texts))
    read = read_ids(texts) | perhaps_read_ids(texts)
    return {
        name for name in (written | ids_in_scripts(scripts)) - kept - LANDMARKS - DESCRIBES if not matched(name, read)
    }


def ids_without_writer(texts: dict[str, str]) -> set[str]:
    _, scripts, pages = split_by_kind(texts)
    written = ids_in_pages(pages)[0] | ids_in_scripts(scripts)
    return {name for name in read_ids(texts) if not matched(name, written) and not IDS_OF_DJANGO.fullmatch(name)}


CHECKS = [
    attributes_without_reader,
    attributes_without_writer,
    classes_without_reader,
    classes_without_writer,
    ids_without_reader,
    ids_without_writer,
]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sources()}


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_hooks_of_all_pages_have_two_ends(check, texts):
    assert check(texts) == set()


@pytest.mark.parametrize(
    ("check", "page", "script", "style", "found"),
    [
        (attributes_without_reader, '<p data-reload="9">', "", "", {"reload"}),
        (attributes_without_reader, '<p data-reload="9">', "e.dataset.reload", "", set()),
        (attributes_without_reader, "<p data-on-top>", "", "[data-on-top] { color: red }", set()),
        (attributes_without_writer, "", "e.dataset.onTop", "", {"on-top"}),
        (attributes_without_writer, "", "e.dataset.onTop; e.dataset.onTop = 1", "", set()),
        (attributes_without_writer, "", "", "p[data-dark] { color: red }", {"dark"}),
        (classes_without_reader, '<p class="a{% if b %} c{% endif %} d{{ e }}">', "", ".a { }", {"c"}),
        (classes_without_writer, '<p class="a c{{ e }}">', "", ".a .c1 { } .d { }", {"d"}),
        (ids_without_reader, '<p id="a"><i id="b{{ c }}">', "", "#a { }", {f"b{GAP}"}),
        (ids_without_reader, '<p id="a"><label for="b1"><i id="b{{ c }}"><a href="/d/#a">', "", "", set()),
        (ids_without_reader, '<p id="a" hx-preserve><button id="b"><p id="c">', 'e.closest("#c")', "", set()),
        (ids_without_writer, '<p id="a" aria-describedby="a b"><i hx-target="#c">', "", "#d { }", {"b", "c", "d"}),
        (ids_without_writer, "", "document.getElementById('gone'); e.querySelector('p #far')", "", {"gone", "far"}),
        (ids_without_writer, '<label for="id_name"><a href="#a">', 'make("p", { id: "a" })', "", set()),
    ],
)
def test_hook_with_one_end_is_found(check, page, script, style, found):
    assert check({"a.html": page, "b.js": script, "c.css": style}) == found
