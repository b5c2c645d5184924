// Model page: one split at a time, chosen in the tree, in the list or in the address (#node-3).
"use strict";

const sections = [...document.querySelectorAll("section.split")];

function choose() {
  const wanted = document.getElementById(location.hash.slice(1));
  const chosen = sections.includes(wanted) ? wanted : sections.find((s) => !s.hidden) ?? sections[0];
  for (const section of sections) section.hidden = section !== chosen;
  for (const link of document.querySelectorAll('a[href^="#node-"]')) {
    const current = chosen !== undefined && link.getAttribute("href") === `#${chosen.id}`;
    if (current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  chosen?.dispatchEvent(new CustomEvent("octweb:shown", { bubbles: true }));
}

if (sections.length > 0) {
  for (const section of sections.slice(1)) section.hidden = true;
  choose();
  window.addEventListener("hashchange", () => {
    choose();
    if (location.hash.startsWith("#node-")) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "nearest" });
  });
}

// frontiers: a point of the picture, or its row in the table, shows the tree of that size
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
// the splits above are those of the model, not of such a tree
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

// on a phone the list takes the place of the picture
if (window.matchMedia("(max-width: 720px)").matches) {
  for (const list of document.querySelectorAll("details.as-list")) list.open = true;
}
