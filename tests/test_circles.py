"""There are no circular imports between modules or between packages."""

from __future__ import annotations

import grimp

# a tree shows itself: the pictures, which are made of trees, are loaded when somebody asks for one
ON_DEMAND = {
    ("trainer.tree.nodes", "trainer.tree.render.figure"),
    ("trainer.tree.nodes", "trainer.tree.render.html"),
    ("trainer.tree.nodes", "trainer.tree.render.tokens"),
}


def circles(graph: grimp.ImportGraph) -> set[tuple[str, str]]:
    """Return imports without which no circle would be left, in any package."""
    packages = sorted(module for module in graph.modules if graph.find_children(module))
    return {
        nominate_cycle_breaker
        for package in packages
        for nominate_cycle_breaker in graph.nominate_cycle_breakers(package)
    }


def test_only_tree_pictures_have_circles():
    graph = grimp.build_graph("trainer", "octweb", cache_dir=None)
    assert circles(graph) == ON_DEMAND
    graph.add_import(importer="trainer.table", imported="trainer.training.run")
    assert circles(graph) - ON_DEMAND
