// Frontiers of a model: a point of the picture, or its row in the table, shows the tree of that size.
"use strict";

function showTree() {
  const details = document.getElementById(location.hash.slice(1));
  if (!(details instanceof HTMLDetailsElement) || !details.classList.contains("of-frontier")) return;
  details.open = true;
  details.scrollIntoView({ block: "nearest" });
  details.querySelector("summary").focus({ preventScroll: true });
}

function showTreeOf(id) {
  if (location.hash === `#${id}`) showTree();
  else location.hash = id;
}

document.addEventListener("octweb:point", (event) => {
  if (String(event.detail.id).startsWith("tree-of-")) showTreeOf(event.detail.id);
});
// the splits above belong to the model, not to such a tree
document.addEventListener("octweb:node", (event) => {
  if (event.target.closest(".of-frontier")) event.preventDefault();
});
for (const row of document.querySelectorAll("tr[data-tree]")) {
  row.addEventListener("click", (event) => {
    event.preventDefault();
    showTreeOf(row.dataset.tree);
  });
}
window.addEventListener("hashchange", showTree);
showTree();
