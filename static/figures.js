// Draws Plotly figures with CSS variables as colours: "var(--c1)" becomes the value of the page's theme.
// [data-figure-url] is fetched when it comes into view; [data-figure-json] names the script that holds it; <script type="application/json" data-figure-for="ID"> is drawn into ID.

const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false, doubleClick: false };
const COLOURED = /style="color:var\((--[\w-]+)\)"/g; // a coloured word inside a text
const VARIABLE = /^var\((--[\w-]+)\)$/;
const BASE = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" };
const loaded = new Map(); // element -> figure with its variables
const wired = new WeakSet();
const chosen = new WeakMap(); // tree element -> node id under the keyboard

function resolve(value, style) {
  if (typeof value === "string") {
    const match = VARIABLE.exec(value);
    if (match) return style.getPropertyValue(match[1]).trim() || "#808080";
    return value.replace(COLOURED, (_, name) => `style="color:${style.getPropertyValue(name).trim()}"`);
  }
  if (Array.isArray(value)) return value.map((item) => resolve(item, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, style)]));
  }
  return value;
}

// A long legend makes the figure taller, not the plot smaller.
function legendRoom(figure, width) {
  const names = figure.data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name.length);
  if (!figure.layout?.showlegend || !names.length) return 0;
  const room = Math.max(120, width - 80);
  if (names.reduce((sum, n) => sum + 50 + 7.5 * n, 0) <= room) return 0;
  const columns = Math.max(1, Math.floor(room / (50 + 7.5 * Math.max(...names))));
  return 20 * (Math.ceil(names.length / columns) - 1);
}

// A figure is drawn again in the width that its place has now: Plotly's own answer to a window of another size
// forgets the height, and does not hear of a place that is unfolded.
const widths = new WeakMap(); // element -> width as drawn
const widened = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.clientWidth && target.clientWidth !== widths.get(target)) draw(target);
});

async function draw(element) {
  const figure = loaded.get(element);
  if (!figure || !window.Plotly || !element.isConnected) return;
  const style = getComputedStyle(document.documentElement);
  if (isPlain(element)) {
    await drawPlain(element, figure, style);
    return;
  }
  const natural = Boolean(figure.layout?.width);
  const scale = natural ? scaleFor(element) : 1;
  const plain = { data: figure.data, layout: { ...BASE, ...figure.layout } };
  const drawn = resolve(scale === 1 ? plain : scaled(plain, scale), style);
  drawn.layout.font = { color: style.getPropertyValue("--ink-2").trim(), family: getComputedStyle(document.body).fontFamily, ...drawn.layout.font };
  if (!natural) {
    const width = element.clientWidth;
    drawn.layout.height = (drawn.layout.height ?? 320) + legendRoom(figure, width);
    if (width) drawn.layout.width = width;
    widths.set(element, width);
    widened.observe(element);
  }
  if (natural) {
    scales.set(element, scale);
    element.style.overflowX = "auto";
    resized.observe(element);
  }
  await window.Plotly.react(element, drawn.data, drawn.layout, { ...CONFIG, responsive: false });
  const container = element.querySelector(".svg-container");
  if (!natural) namesInside(element);
  if (natural && container) container.style.width = `${drawn.layout.width}px`; // and the style sheet centres it
  offer(element);
  wire(element);
  if (natural) {
    buttons(element);
    mark(element);
  }
  element.dispatchEvent(new CustomEvent("octweb:drawn", { bubbles: true, detail: figure }));
}

// On a phone the name of a point may exceed the picture: move it back.
function namesInside(element) {
  const edge = element.getBoundingClientRect().right;
  for (const name of element.querySelectorAll(".textpoint text")) {
    name.style.transform = "";
    const beyond = name.getBoundingClientRect().right - edge;
    if (beyond > 0) name.style.transform = `translateX(${-beyond}px)`;
  }
}

// ---- a figure in full size without controls; its container pans and zooms it

const isPlain = (element) => element.hasAttribute("data-figure-plain");

async function drawPlain(element, figure, style) {
  const drawn = resolve({ data: figure.data, layout: { ...BASE, ...figure.layout, hovermode: false } }, style);
  drawn.layout.font = { ...drawn.layout.font, family: getComputedStyle(document.body).fontFamily };
  await window.Plotly.react(element, drawn.data, drawn.layout, { ...CONFIG, responsive: false, staticPlot: true });
  element.dispatchEvent(new CustomEvent("octweb:drawn", { bubbles: true, detail: figure }));
}

// ---- a figure of fixed size: centred, and scaled down on narrow pages while text stays readable

const READABLE = 0.72;
const ZOOMS = [["Fit", 0, "Show the whole picture"], ["100 %", 1, "Show the picture in full size"]];
const zooms = new WeakMap(); // element -> scale that was asked for; 0 fits
const scales = new WeakMap(); // element -> scale as drawn
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) if (scaleFor(target) !== scales.get(target)) draw(target);
});

const fitting = (element) => Math.min(1, (element.clientWidth || Infinity) / loaded.get(element).layout.width);

function scaleFor(element) {
  if (zooms.has(element)) return zooms.get(element) || fitting(element);
  return Math.max(fitting(element), READABLE);
}

// Positions in axis units follow the size; sizes in pixels must be scaled.
function scaled({ data, layout }, scale) {
  const smaller = (sizes) => sizes.map((s) => scale * s);
  const word = (trace) => {
    if (trace.mode === "markers") return { ...trace, marker: { ...trace.marker, size: smaller(trace.marker.size) } };
    if (trace.mode === "text") return { ...trace, textfont: { ...trace.textfont, size: smaller(trace.textfont.size) } };
    return trace;
  };
  return { data: data.map(word), layout: { ...layout, width: scale * layout.width, height: scale * layout.height } };
}

function buttons(element) {
  const fitScale = fitting(element);
  for (const button of element.nextElementSibling?.querySelectorAll("[data-zoom]") ?? []) {
    button.hidden = fitScale === 1;
    button.setAttribute("aria-pressed", String((Number(button.dataset.zoom) || fitScale) === scales.get(element)));
  }
}

async function zoom(element, scale) {
  const middle = (element.scrollLeft + element.clientWidth / 2) / element.scrollWidth;
  zooms.set(element, scale);
  await draw(element);
  element.scrollLeft = middle * element.scrollWidth - element.clientWidth / 2;
}

// ---- save pictures as shown, with the page's background

async function save(element, format) {
  const style = getComputedStyle(document.documentElement);
  const background = style.getPropertyValue("--card").trim();
  const { _fullLayout: full } = element;
  await window.Plotly.downloadImage(
    { data: element.data, layout: { ...element.layout, paper_bgcolor: background, plot_bgcolor: background } },
    { format, width: full.width, height: full.height, scale: format === "png" ? 2 : 1, filename: element.dataset.name || "octweb" },
  );
}

function offer(element) {
  if (element.nextElementSibling?.classList.contains("take")) return;
  const bar = document.createElement("p");
  bar.className = "take";
  for (const [text, scale, label] of loaded.get(element)?.layout?.width ? ZOOMS : []) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text, hidden: true });
    button.setAttribute("aria-label", label);
    button.dataset.zoom = scale;
    button.addEventListener("click", () => zoom(element, scale));
    bar.append(button);
  }
  for (const format of ["svg", "png"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.setAttribute("aria-label", `Save this picture as ${format.toUpperCase()}`);
    button.addEventListener("click", () => save(element, format));
    bar.append(button);
  }
  element.after(bar);
}

function say(element, text) {
  element.textContent = text;
  element.classList.add("note");
}

const requestCounts = new WeakMap();  // only the response to the last request counts

async function load(element) {
  const url = element.dataset.figureUrl;
  if (!url) return;
  const turn = (requestCounts.get(element) ?? 0) + 1;
  requestCounts.set(element, turn);
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin", cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const figure = await answer.json();
    if (requestCounts.get(element) !== turn) return;
    loaded.set(element, figure);
  } catch {
    if (!loaded.has(element)) say(element, "The picture could not be loaded. Reload the page; the text beside it has the same numbers.");
    return;
  }
  if (element.classList.contains("note") && !element.classList.contains("js-plotly-plot")) element.textContent = "";
  await draw(element);
}

function choose(element, id) {
  const allowed = element.dispatchEvent(
    new CustomEvent("octweb:node", { bubbles: true, cancelable: true, detail: { id } }),
  );
  if (allowed) window.location.hash = `#node-${id}`; // where nothing else is done with it, the address names the node
}

// ---- trees: boxes in layout.meta.nodes, in pixels from the top left corner

function tree(element) {
  const meta = loaded.get(element)?.layout?.meta;
  return meta?.kind === "tree" ? meta.nodes : null;
}

function nodeAt(element, event) {
  const area = element.querySelector(".main-svg");
  if (!area) return null;
  const corner = area.getBoundingClientRect();
  const scale = scales.get(element);
  const x = (event.clientX - corner.left) / scale;
  const y = (event.clientY - corner.top) / scale;
  return tree(element).find(({ box: [left, top, width, height] }) => x >= left && x <= left + width && y >= top && y <= top + height) ?? null;
}

function step(nodes, at, key) {
  const node = nodes.find((v) => v.id === at) ?? nodes[0];
  const parent = nodes.find((v) => v.id === node.parent);
  if (key === "ArrowUp") return parent ?? node;
  if (key === "ArrowDown") return nodes.find((v) => v.id === node.left) ?? node;
  const targetId = key === "ArrowLeft" ? parent?.left : parent?.right;
  return nodes.find((v) => v.id === targetId) ?? node;
}

function mark(element) {
  const nodes = tree(element);
  const ring = element.querySelector(".octweb-focus");
  const node = nodes?.find((v) => v.id === chosen.get(element));
  if (!node || !element.matches(":focus-visible")) {
    ring?.remove();
    return;
  }
  const [left, top, width, height] = node.box.map((v) => scales.get(element) * v);
  const target = ring ?? document.createElement("div");
  target.className = "octweb-focus";
  const plot = element.querySelector(".svg-container") ?? element;
  Object.assign(target.style, {
    position: "absolute", pointerEvents: "none", boxSizing: "border-box", borderRadius: "7px",
    border: "3px solid var(--focus)", left: `${left - 4}px`, top: `${top - 4}px`, width: `${width + 8}px`, height: `${height + 8}px`,
  });
  plot.append(target);
  element.setAttribute("aria-label", node.label);
  target.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function onKey(event) {
  const element = event.currentTarget;
  const nodes = tree(element);
  if (!nodes || event.altKey || event.ctrlKey || event.metaKey) return;
  const at = chosen.get(element) ?? 0;
  if (event.key === "Enter") choose(element, at);
  else if (event.key.startsWith("Arrow")) {
    chosen.set(element, step(nodes, at, event.key).id);
    mark(element);
  } else return;
  event.preventDefault();
}

function wire(element) {
  if (wired.has(element)) return;
  wired.add(element);
  const root = tree(element)?.[0].box;
  if (root) element.scrollLeft = scales.get(element) * (root[0] + root[2] / 2) - element.clientWidth / 2; // a wide tree starts at its root
  if (tree(element)) {
    element.tabIndex = 0;
    if (!element.hasAttribute("role")) element.setAttribute("role", "application");
    element.addEventListener("keydown", onKey);
    element.addEventListener("focus", () => { if (!chosen.has(element)) chosen.set(element, 0); mark(element); });
    element.addEventListener("blur", () => mark(element));
    element.addEventListener("click", (event) => {
      const node = nodeAt(element, event);
      if (node) { chosen.set(element, node.id); choose(element, node.id); }
    });
    return;
  }
  element.on("plotly_click", (event) => {
    const data = event.points?.[0]?.customdata;
    if (data === undefined || data === null) return;
    element.dispatchEvent(new CustomEvent("octweb:point", { bubbles: true, detail: { id: data } }));
  });
}

// ---- when to draw

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    watcher.unobserve(entry.target);
    if (!requestCounts.has(entry.target)) load(entry.target); // htmx names the same element again once it has started
  }
}, { rootMargin: "300px" });

function start(root) {
  const all = (selector) => [...(root.matches?.(selector) ? [root] : []), ...root.querySelectorAll(selector)];
  for (const element of all("[data-figure-url]")) watcher.observe(element);
  startFromScripts(all);
  for (const script of all('script[type="application/json"][data-figure-for]')) {
    const element = document.getElementById(script.dataset.figureFor);
    if (!element) continue;
    loaded.set(element, JSON.parse(script.textContent));
    draw(element);
  }
}

// figures with data in a json_script beside them
function startFromScripts(all) {
  for (const element of all("[data-figure-json]")) {
    const script = document.getElementById(element.dataset.figureJson);
    if (!script) continue;
    loaded.set(element, JSON.parse(script.textContent));
    draw(element);
  }
}

function redraw() {
  for (const element of loaded.keys()) {
    if (element.isConnected) draw(element);
    else loaded.delete(element);
  }
}

document.addEventListener("octweb:save", (event) => save(event.target, event.detail));
document.addEventListener("octweb:theme", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
document.addEventListener("octweb:reload", (event) => load(event.target));
document.addEventListener("htmx:load", (event) => start(event.detail.elt));
start(document);
