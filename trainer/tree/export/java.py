"""Export a tree as a Java class without dependencies."""

from __future__ import annotations

from trainer.errors import DataError
from trainer.tree.export.nested import Braces, by_name, json_text, nested_code, refusal_words, refuse_unknown
from trainer.tree.nodes import Tree

MAX_NODES = 1_000  # the code of a Java method is limited to 64 kB

_HELPERS = """
    private static double number(Map<String, ?> row, String column) {
        Object found = row.get(column);
        if (found instanceof Boolean) return ((Boolean) found) ? 1.0 : 0.0;
        return found == null ? Double.NaN : ((Number) found).doubleValue();
    }

    private static String text(Map<String, ?> row, String column, String missing) {
        Object found = row.get(column);
        return found == null ? missing : found.toString();
    }
"""


def to_java(tree: Tree, name: str = "OctwebTree") -> str:
    """Return a class with static `leaf(row)`, `predict(row)` and `probabilities(row)`; a row is a Map from column to value.

    Absent, null and NaN are missing. The class throws IllegalArgumentException for an unknown value that the contract
    refuses. Raise DataError for a tree that is too deep, or too large for a method.
    """
    if len(tree.nodes) > MAX_NODES:
        raise DataError(
            f"The tree has {len(tree.nodes):,} nodes, but a method of Java holds about {MAX_NODES:,}. Train a smaller tree or choose another export."
        )
    classes = ", ".join(map(json_text, tree.classes))
    lines = ["// A classification tree: leaf(row), predict(row), probabilities(row); row is a map of columns."]
    lines += ["import java.util.Map;", "", f"public final class {name} {{", f"    private {name}() {{}}", ""]
    lines += [f"    public static final String[] CLASSES = {{{classes}}};", _HELPERS]
    braces = dialect(tree)
    lines += ["    public static int leaf(Map<String, ?> row) {", *refuse_unknown(tree, braces, _refusal, level=2)]
    lines += [*nested_code(tree, braces, level=2), "    }", ""]
    lines += ["    public static String predict(Map<String, ?> row) {", "        switch (leaf(row)) {"]
    lines += [f"            case {v.id}: return CLASSES[{v.label}];" for v in tree.leaves]
    lines += _end()
    lines += ["    public static double[] probabilities(Map<String, ?> row) {", "        switch (leaf(row)) {"]
    for v in tree.leaves:
        shares = ", ".join(map(repr, tree.probabilities[v.id].tolist()))
        lines.append(f"            case {v.id}: return new double[] {{{shares}}};")
    lines += _end()[:-1]
    return "\n".join([*lines, "}"]) + "\n"


def _refusal(column: str) -> str:
    return f"throw new IllegalArgumentException({json_text(refusal_words(column))});"


def _end() -> list[str]:
    return ["            default: throw new IllegalStateException();", "        }", "    }", ""]


def dialect(tree: Tree) -> Braces:
    """Return the Java syntax of the tests."""
    return by_name(
        tree,
        same=lambda name, word, missing: f"{word}.equals(text(row, {name}, {missing or 'null'}))",
        infinity="Double.POSITIVE_INFINITY",
        flag=lambda test: f"({test} ? 1.0 : 0.0)",
        empty=lambda value: f"Double.isNaN({value})",
    )
