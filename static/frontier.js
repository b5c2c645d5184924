// Frontiers of a model: a click on a point or its table row shows the tree of that size.
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
// trees of the frontier do not select splits of the model
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
