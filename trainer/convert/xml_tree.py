"""Parse untrusted XML: refuse DTDs, entities and external references, and limit its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from trainer.errors import ConversionError

MOST_DEPTH = 1000
MOST_ELEMENTS = 2_000_000


@dataclass
class Element:
    """An element: its name without the namespace, attributes, children, texts, and its line."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return an attribute, or `default`."""
        return self.attributes.get(name, default)

    def all(self, *names: str) -> Iterator[Element]:
        """Return the children with one of these names."""
        return (child for child in self.children if child.name in names)

    def first(self, name: str) -> Element | None:
        """Return the first child of this name, or None."""
        return next(self.all(name), None)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def __str__(self) -> str:
        return f"<{self.name}> in line {self.line}"


def parse(content: bytes) -> Element:
    """Return the root of a document; raises ConversionError if it is malformed, too large or has a document type."""
    parser = expat.ParserCreate(namespace_separator="\n")
    parser.buffer_text = True
    stack = [Element(name="", attributes={}, line=0)]
    count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(stack) > MOST_DEPTH or count > MOST_ELEMENTS:
            raise ConversionError(
                f"The XML has more than {MOST_ELEMENTS:,} elements, or elements nested deeper than {MOST_DEPTH:,}. Export a smaller tree."
            )
        element = Element(name=name.split("\n")[-1], attributes=attributes, line=parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def refuse(*_: object) -> None:
        raise ConversionError(
            "The XML has a document type (<!DOCTYPE …>), which is refused for safety. Remove that line."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.CharacterDataHandler = lambda text: stack[-1].texts.append(text)
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise ConversionError(f"This is not well-formed XML: {error}. Export the document again.") from error
    return stack[0].children[0]
