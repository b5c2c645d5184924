// Canvas of the tree: one Plotly figure in full size that is panned and zoomed, with a focusable card over each node.
"use strict";

const canvas = document.getElementById("canvas");
const view = document.getElementById("view");
const layer = document.getElementById("layer");
const picture = document.getElementById("tree-figure");
const hits = document.getElementById("hits");
const about = document.getElementById("about");
const map = document.getElementById("map-figure");

const AIR = 8; // pixels around a picture that is fitted
const LEAST = 0.1;
const MOST = 2.5;
const LARGEST = 1.25; // a small tree is enlarged to this scale where there is room
const ABOVE = 0.4; // the part of the free height that lies above a picture
let nodes = []; // as the figure's layout.meta names them
let closed = []; // branches that are folded up
let auto = true; // the server chooses them, so that what is left can be read
let levels = 0;
let chosen = Number(canvas.dataset.node);
let place = { x: 0, y: 0, scale: 1 };
let size = { width: 1, height: 1 };
let refit = true; // the next figure is shown whole
let fitted = true;

// the minimap and the path of a row reduce the height
const taken = (element) => (element?.offsetHeight ? element.offsetHeight + 12 : 0);
const roomHeight = () => view.clientHeight - Math.max(taken(document.getElementById("minimap")), taken(canvas.querySelector(".only-flow")));

// ---- the figure

function ask({ keep = false, show = null } = {}) {
  const query = new URLSearchParams({ width: Math.round(view.clientWidth), height: Math.round(roomHeight()) });
  if (canvas.dataset.leaf) query.set("leaf", canvas.dataset.leaf);
  if (!auto) query.set("closed", closed.join(","));
  if (show !== null) query.set("show", show);
  refit = !keep;
  picture.dataset.figureUrl = `${canvas.dataset.figure}?${query}`;
  picture.dispatchEvent(new CustomEvent("octweb:reload", { bubbles: true }));
}

picture.addEventListener("octweb:drawn", (event) => {
  const { layout } = event.detail;
  const anchor = keptInPlace();
  nodes = layout.meta.nodes;
  closed = layout.meta.closed;
  levels = layout.meta.levels;
  size = { width: layout.width, height: layout.height };
  cards();
  if (refit) fit();
  else stay(anchor);
});

// keep the card of a branch in place when it expands or collapses
let anchorId = null;
function keptInPlace() {
  const node = nodes.find((v) => v.id === anchorId);
  return node ? [place.x + place.scale * node.box[0], place.y + place.scale * node.box[1]] : null;
}
function stay(at) {
  const node = nodes.find((v) => v.id === anchorId);
  if (at && node) place = { ...place, x: at[0] - place.scale * node.box[0], y: at[1] - place.scale * node.box[1] };
  show();
  for (const id of [node?.left, node?.right, node?.id]) intoSight(id); // what was opened is seen, its question above all
}

// ---- cards over the picture, for clicks, keyboard and screen readers

function cards() {
  const focused = document.activeElement?.closest?.(".hit")?.dataset.node;
  hits.replaceChildren(...nodes.map((node) => {
    const card = document.createElement("div");
    const [left, top, width, height] = node.box;
    card.className = node.leaf ? "hit leaf" : "hit";
    card.dataset.node = node.id;
    card.setAttribute("role", "treeitem");
    card.setAttribute("aria-level", node.level + 1);
    card.setAttribute("aria-label", node.label);
    card.setAttribute("aria-selected", String(node.id === chosen));
    if (!node.leaf) card.setAttribute("aria-expanded", String(!node.closed));
    card.tabIndex = -1;
    Object.assign(card.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    return card;
  }));
  const kept = focused && hits.querySelector(`[data-node="${focused}"]`);
  const first = kept || hits.querySelector(`[data-node="${chosen}"]`) || hits.firstElementChild;
  first.tabIndex = 0;
  if (focused) first.focus({ preventScroll: true }); // who opens and closes branches by keys walks on from there
}

function markChosen(id) {
  chosen = id;
  for (const card of hits.children) {
    card.setAttribute("aria-selected", String(Number(card.dataset.node) === id));
    card.tabIndex = Number(card.dataset.node) === id ? 0 : -1;
  }
}
document.addEventListener("octweb:chosen", (event) => {
  markChosen(event.detail.id);
  if (!nodes.some((v) => v.id === chosen)) return;
  intoSight(chosen);
});

function choose(id) {
  markChosen(id);
  canvas.dispatchEvent(new CustomEvent("octweb:node", { bubbles: true, cancelable: true, detail: { id } }));
}

const atCard = (event) => {
  const card = event.target.closest?.(".hit");
  return card ? nodes.find((v) => v.id === Number(card.dataset.node)) : undefined;
};

hits.addEventListener("click", (event) => {
  const node = atCard(event);
  if (!node || moved) return;
  if (node.closed && onPlus(event, node)) toggle(node.id);
  else choose(node.id);
});
hits.addEventListener("dblclick", (event) => {
  const node = atCard(event);
  if (node && !node.leaf) toggle(node.id);
});

// the corner with the plus sign
function onPlus(event, node) {
  const corner = event.target.getBoundingClientRect();
  return event.clientX > corner.right - 32 * place.scale && event.clientY > corner.bottom - 30 * place.scale && node.closed;
}

// ---- expand and collapse

function toggle(id) {
  const node = nodes.find((v) => v.id === id);
  if (!node || node.leaf) return;
  anchorId = id;
  auto = false;
  if (!node.closed) closed = [...closed.filter((v) => !below(v, id)), id];
  ask({ keep: true, show: node.closed ? id : null }); // one level of it is opened
}
function below(id, top) {
  for (let at = nodes.find((v) => v.id === id); at; at = nodes.find((v) => v.id === at.parent)) if (at.id === top) return true;
  return false;
}

// expand everything below the chosen card, and collapse everything beside the path to it
function onlyThisPart() {
  const find = (id) => nodes.find((v) => v.id === id);
  if (!find(chosen)) return;
  closed = [];
  for (let at = find(chosen); find(at.parent); at = find(at.parent)) {
    const above = find(at.parent);
    const beside = find(above.left === at.id ? above.right : above.left);
    if (beside && !beside.leaf) closed.push(beside.id);
  }
  auto = false;
  ask();
}

function level(change) {
  const deepest = Math.max(...nodes.map((v) => v.level + (v.leaf || v.closed ? 0 : 1)));
  const open = Math.min(levels, Math.max(1, deepest + change));
  const url = new URLSearchParams({ levels: open, width: Math.round(view.clientWidth), height: Math.round(roomHeight()) });
  refit = true;
  auto = false;
  picture.dataset.figureUrl = `${canvas.dataset.figure}?${url}`;
  picture.dispatchEvent(new CustomEvent("octweb:reload", { bubbles: true }));
}

// ---- pan and zoom

function show() {
  about.hidden = true; // it would stand where its card was
  layer.style.transform = `translate(${place.x}px, ${place.y}px) scale(${place.scale})`;
  document.getElementById("zoom-now").textContent = `${Math.round(100 * place.scale)} %`;
  for (const button of document.querySelectorAll('[data-canvas="fit"]')) button.setAttribute("aria-pressed", String(fitted && auto));
  for (const button of document.querySelectorAll('[data-canvas="all"]')) button.setAttribute("aria-pressed", String(!auto && closed.length === 0)); // one of the two, never both
  showFrame();
}

function fit() {
  const scale = Math.min(LARGEST, (view.clientWidth - AIR) / size.width, (roomHeight() - AIR) / size.height);
  place = { scale, x: (view.clientWidth - scale * size.width) / 2, y: Math.max(0, ABOVE * (roomHeight() - scale * size.height)) };
  fitted = true;
  show();
}

function zoom(factor, at = { x: view.clientWidth / 2, y: view.clientHeight / 2 }) {
  const scale = Math.min(MOST, Math.max(LEAST, place.scale * factor));
  const ratio = scale / place.scale;
  place = { scale, x: at.x - ratio * (at.x - place.x), y: at.y - ratio * (at.y - place.y) };
  fitted = false;
  show();
}

// zooming by keys keeps the focused card in view
function zoomed(factor) {
  zoom(factor);
  intoSight(Number(document.activeElement?.closest?.(".hit")?.dataset.node));
}

function full() {
  const node = nodes.find((v) => v.id === chosen) ?? nodes[0];
  const [left, top, width, height] = node.box;
  place = { scale: 1, x: view.clientWidth / 2 - left - width / 2, y: Math.min(AIR, view.clientHeight / 2 - top - height / 2) };
  fitted = false;
  show();
}

function intoSight(id) {
  const node = nodes.find((v) => v.id === id);
  if (!node) return;
  const [left, top, width, height] = node.box.map((n) => n * place.scale);
  const beyond = (start, length, room) => (start < AIR ? AIR - start : start + length > room - AIR ? room - AIR - start - length : 0);
  const dx = beyond(place.x + left, width, view.clientWidth);
  const dy = beyond(place.y + top, height, roomHeight());
  if (!dx && !dy) return;
  place = { ...place, x: place.x + dx, y: place.y + dy };
  fitted = false;
  show();
}

let moved = false;
view.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  const start = { x: event.clientX - place.x, y: event.clientY - place.y, at: [event.clientX, event.clientY] };
  moved = false;
  const move = (next) => {
    if (!moved && Math.hypot(next.clientX - start.at[0], next.clientY - start.at[1]) < 4) return;
    moved = true;
    fitted = false;
    view.classList.add("moving");
    place = { ...place, x: next.clientX - start.x, y: next.clientY - start.y };
    show();
  };
  const end = () => {
    window.removeEventListener("pointermove", move);
    view.classList.remove("moving");
    window.setTimeout(() => { moved = false; });
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end, { once: true });
});
view.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.ctrlKey) {
    const corner = view.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), { x: event.clientX - corner.left, y: event.clientY - corner.top });
    return;
  }
  place = { ...place, x: place.x - (event.shiftKey ? event.deltaY : event.deltaX), y: place.y - (event.shiftKey ? 0 : event.deltaY) };
  fitted = false;
  show();
}, { passive: false });

// ---- counts of the hovered or focused card

function tell(event) {
  const node = atCard(event);
  about.hidden = !node;
  if (!node) return;
  const words = picture.data?.find((trace) => trace.name === "nodes");
  const at = words?.customdata.indexOf(node.id) ?? -1;
  about.replaceChildren(...(at < 0 ? [node.label] : words.hovertext[at].split("<br>")).map((line) => {
    const part = document.createElement(line.startsWith("<b>") ? "b" : "span");
    part.textContent = line.replace(/<\/?b>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
    return part;
  }));
  const card = event.target.closest(".hit").getBoundingClientRect();
  const corner = canvas.getBoundingClientRect();
  const left = Math.max(AIR, Math.min(card.left - corner.left, canvas.clientWidth - about.offsetWidth - AIR));
  const under = card.bottom - corner.top + AIR;
  const top = under + about.offsetHeight < canvas.clientHeight ? under : card.top - corner.top - about.offsetHeight - AIR;
  Object.assign(about.style, { left: `${left}px`, top: `${Math.max(AIR, top)}px` });
}
hits.addEventListener("pointerover", tell);
hits.addEventListener("pointerleave", () => { about.hidden = true; });
hits.addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) tell(event); });
hits.addEventListener("focusout", () => { about.hidden = true; });

// ---- minimap and its frame

function showFrame() {
  const frame = document.getElementById("map-frame");
  const places = map?.layout?.meta?.nodes;
  if (!frame || !places || !nodes.length) return;
  const inView = new Set(nodes.filter(({ box: [left, top, width, height] }) => {
    const x = place.x + place.scale * (left + width / 2);
    const y = place.y + place.scale * (top + height / 2);
    return x > 0 && y > 0 && x < view.clientWidth && y < view.clientHeight;
  }).map((v) => v.id));
  const seen = places.filter((v) => inView.has(v.id));
  frame.hidden = !seen.length;
  if (!seen.length) return;
  const xs = seen.map((v) => v.x);
  const ys = seen.map((v) => v.y);
  const [left, top] = [Math.min(...xs) - 5, Math.min(...ys) - 5];
  Object.assign(frame.style, { left: `${left}px`, top: `${top}px`, width: `${Math.max(...xs) + 5 - left}px`, height: `${Math.max(...ys) + 5 - top}px` });
}
map?.addEventListener("octweb:drawn", showFrame);
document.querySelector("#minimap .map")?.addEventListener("click", (event) => {
  const places = map.layout?.meta?.nodes;
  if (!places) return;
  const corner = map.getBoundingClientRect();
  const [x, y] = [event.clientX - corner.left, event.clientY - corner.top];
  const shown = new Set(nodes.map((v) => v.id));
  const near = places.filter((v) => shown.has(v.id)).sort((a, b) => Math.hypot(a.x - x, a.y - y) - Math.hypot(b.x - x, b.y - y))[0];
  const [left, top, width, height] = nodes.find((v) => v.id === near.id).box;
  place = { ...place, x: view.clientWidth / 2 - place.scale * (left + width / 2), y: view.clientHeight / 2 - place.scale * (top + height / 2) };
  fitted = false;
  show();
});

// ---- buttons and keys

function asText() {
  const text = document.getElementById("as-text");
  text.hidden = !text.hidden;
  for (const button of document.querySelectorAll('[data-canvas="text"]')) button.setAttribute("aria-pressed", String(!text.hidden));
}

const acts = {
  in: () => zoomed(1.25),
  out: () => zoomed(0.8),
  full,
  fit: () => { auto = true; ask(); },
  all: () => { auto = false; closed = []; ask(); },
  more: () => level(1),
  fewer: () => level(-1),
  part: onlyThisPart,
  text: asText,
  keys: () => document.getElementById("keys").showModal(),
  svg: () => picture.dispatchEvent(new CustomEvent("octweb:save", { bubbles: true, detail: "svg" })),
  png: () => picture.dispatchEvent(new CustomEvent("octweb:save", { bubbles: true, detail: "png" })),
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-canvas]");
  if (button) acts[button.dataset.canvas]();
});

function walk(from, key) {
  const node = nodes.find((v) => v.id === from) ?? nodes[0];
  const find = (id) => nodes.find((v) => v.id === id);
  if (key === "ArrowUp") return find(node.parent) ?? node;
  if (key === "ArrowDown") return find(node.left) ?? node;
  const row = nodes.filter((v) => v.level === node.level).sort((a, b) => a.box[0] - b.box[0]);
  return row[row.indexOf(node) + (key === "ArrowLeft" ? -1 : 1)] ?? node;
}

const KEYS = { f: "fit", F: "fit", 0: "full", "+": "in", "=": "in", "-": "out", "−": "out", "?": "keys" };
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea")) return;
  const card = event.target.closest?.(".hit");
  if (card && event.key.startsWith("Arrow")) {
    const next = walk(Number(card.dataset.node), event.key);
    const to = hits.querySelector(`[data-node="${next.id}"]`);
    intoSight(next.id);
    card.tabIndex = -1;
    to.tabIndex = 0;
    to.focus({ preventScroll: true });
  } else if (card && event.key === "Enter") choose(Number(card.dataset.node));
  else if (card && event.key === " ") toggle(Number(card.dataset.node));
  else if (event.key === "/" && document.getElementById("follow")) document.getElementById("follow").focus();
  else if ((event.key === "m" || event.key === "M") && map) document.getElementById("minimap").toggleAttribute("hidden");
  else if (KEYS[event.key]) acts[KEYS[event.key]]();
  else return;
  event.preventDefault();
});

// a list entry of a collapsed node expands the path to it
document.addEventListener("octweb:chosen", (event) => {
  if (!nodes.length || nodes.some((v) => v.id === event.detail.id)) return;
  auto = false;
  ask({ show: event.detail.id });
});

let room = "";
new ResizeObserver(() => {
  const now = `${view.clientWidth}×${view.clientHeight}`;
  if (now === room || !view.clientWidth) return;
  room = now;
  if (fitted) ask();
}).observe(view);
