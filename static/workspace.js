// Model page: the inspector follows the chosen node; tabs and links update it in place; the URL keeps node and tab.
"use strict";

const inspector = document.getElementById("inspector");
const narrow = window.matchMedia("(max-width: 720px)");

function keepAddress(changes) {
  const query = new URLSearchParams(window.location.search);
  query.set("mode", "tree");
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  window.history.replaceState(null, "", `?${query}`);
  return query;
}

// show the rows of a cell of the confusion matrix until another node is chosen
const OF_ROWS = { actual: null, predicted: null, part: null, sort: null, descending: null, page: null, wrong: null };

async function showNode(node, tab, focus = "") {
  if (!inspector) return;
  const query = keepAddress({ ...OF_ROWS, node, tab: tab ?? new URLSearchParams(window.location.search).get("tab") });
  if (!query.get("tab") || query.get("tab") === "null") query.delete("tab");
  await window.htmx.ajax("GET", `${window.location.pathname}node/?${query}`, { target: "#inspector", swap: "innerHTML" });
  placeInspector(node);
  document.dispatchEvent(new CustomEvent("octweb:chosen", { detail: { id: Number(node) } }));
  if (focus) inspector.querySelector(focus)?.focus();
}

const nodeNow = () => inspector?.querySelector("header")?.dataset.node ?? "0";

// on a phone the inspector is below the chosen line of the list
function placeInspector(node) {
  const stage = document.querySelector(".stage");
  if (!stage) return;
  const line = narrow.matches ? document.querySelector(`.outline [data-node="${node}"] > .why`) : null;
  if (line) line.after(inspector);
  else if (inspector.parentElement !== stage) stage.append(inspector);
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const chosen = event.target.closest("[data-choose]");
  const tab = event.target.closest("[data-tab]");
  const cell = event.target.closest("[data-cell]");
  if (chosen && inspector) {
    event.preventDefault();
    showNode(chosen.dataset.choose);
  } else if (tab && inspector) {
    event.preventDefault();
    showNode(nodeNow(), tab.dataset.tab, `[data-tab="${tab.dataset.tab}"]`);
  } else if (cell) {
    for (const other of document.querySelectorAll("td.c.on")) other.classList.remove("on");
    cell.closest("td").classList.add("on");
  }
});

document.addEventListener("octweb:node", (event) => {
  if (!inspector || event.target.id !== "canvas") return;
  event.preventDefault();
  showNode(event.detail.id);
});

// scroll to the rows of a cell, which open below its table
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "cell-rows") event.target.scrollIntoView({ block: "nearest" });
});

// a point of the calibration picture is a leaf
document.addEventListener("octweb:point", (event) => {
  if (event.target.closest("#calibration")) window.location.assign(`?mode=tree&node=${event.detail.id}`);
});

const typing = (target) => target.matches("input, select, textarea, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || typing(event.target) || !inspector) return;
  const tab = inspector.querySelectorAll("[data-tab]")[Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && tab) showNode(nodeNow(), tab.dataset.tab);
});

// on a phone the modes are wider than the screen: scroll to the open one
const tabs = document.querySelector(".modes");
const open = tabs?.querySelector('[aria-current="page"]');
if (open && tabs.scrollWidth > tabs.clientWidth) tabs.scrollLeft = open.offsetLeft + open.offsetWidth / 2 - tabs.clientWidth / 2;

if (inspector) {
  placeInspector(nodeNow());
  narrow.addEventListener("change", () => placeInspector(nodeNow()));
}
if (narrow.matches) document.getElementById("as-text")?.removeAttribute("hidden");
