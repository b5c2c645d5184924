// Move the threshold of a split in its picture: by dragging, keys or typing. The counts come from the figure
// (layout.meta); the model never changes.

const BESIDE = 7; // pixels between the line and its words
const EDGE = 4; // and between these and the edge of the picture
const part = (name) => document.getElementById(`threshold-${name}`);
const whole = (n) => n.toLocaleString("en");
const rows = (n) => `${whole(n)} row${n === 1 ? "" : "s"}`;
let at = null; // the picture on the page: { figure, facts, stop, value, drawn }

// format a number like a threshold, with every digit; years have no comma, and ranks are words (trainer/tree/numbers.py)
function written(value) {
  const word = at.facts.ranks?.[Math.floor(value) - 1];
  if (word !== undefined) return word;
  const text = String(Math.abs(value));
  const [digits, rest] = text.split(".");
  if (at.facts.year && value >= 1000 && value < 3000) return text;
  const grouped = text.includes("e") ? text : digits.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  return (value < 0 ? "−" : "") + grouped;
}

// Plotly reads texts as HTML
const inPicture = (value) => written(value).replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const withUnit = (value) => written(value) + part("try").dataset.unit;

// ---- effect of a threshold

// rows that answer yes and misclassified rows: stop −1 is below all values, the last one above them
function counts({ facts, stop }) {
  if (stop < 0) return { yes: facts.least, wrong: facts.nobody };
  if (stop === facts.cuts.length) return { yes: facts.known, wrong: facts.everybody };
  return { yes: facts.yes[stop], wrong: facts.wrong[stop] };
}

function nearest(cuts, value) {
  let [low, high] = [0, cuts.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle] + cuts[middle + 1] < 2 * value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// return the stop of a typed value; in thinned columns, the nearest one
function typed(value) {
  const { low, high, cuts } = at.facts;
  if (value < low[0]) return { stop: -1, value };
  if (value >= high.at(-1)) return { stop: cuts.length, value };
  let stop = low.findLastIndex((least) => least <= value);
  if (value < high[stop]) return { stop, value };
  stop = nearest(cuts, value);
  return { stop, value: cuts[stop] };
}

// ---- drawing

const ink = document.createElement("canvas").getContext("2d");
function width(text, weight = 400) {
  ink.font = `${weight} 11px ${getComputedStyle(document.body).fontFamily}`;
  return ink.measureText(text).width;
}

// labels of both sides beside the line, moved away from an edge together
function sides(full, x, { yes }) {
  const texts = [`yes · ${rows(yes)}`, `no · ${rows(at.facts.rows - yes)}`];
  const here = full.xaxis._offset + full.xaxis.l2p(x);
  const [left, right] = [here - BESIDE - width(texts[0], 600), here + BESIDE + width(texts[1], 600)];
  const shift = left < EDGE ? EDGE - left : Math.min(0, full.width - EDGE - right);
  return { yes: { text: texts[0], x, xref: "x", xanchor: "right", xshift: shift - BESIDE },
    no: { text: texts[1], x, xref: "x", xanchor: "left", xshift: shift + BESIDE } };
}

function title(full, { wrong }) {
  const { facts, value } = at;
  const words = value === facts.own
    ? [`Wrong rows if you move the line: ${facts.lowest}`, `Wrong rows: ${facts.lowest}`]
    : [`Wrong rows with the line at ${inPicture(value)}: ${whole(wrong)} (${facts.lowest})`, `Wrong at ${inPicture(value)}: ${whole(wrong)} (${facts.lowest})`];
  const text = words.find((w) => width(w) < full.width - 4) ?? words[1];
  return { wrong: { text, xshift: 2 - full._size.l } };
}

function changes() {
  const { figure, value } = at;
  const full = figure._fullLayout;
  const [low, high] = full.xaxis.range;
  const x = Math.min(high, Math.max(low, value));
  const now = counts(at);
  const moved = { cut: { x0: x, x1: x }, reach: { x0: x, x1: x }, now: { xanchor: x, yanchor: now.wrong } };
  const noted = { ...sides(full, x, now), ...title(full, now) };
  const found = {};
  for (const [list, named] of [["shapes", moved], ["annotations", noted]]) {
    figure.layout[list].forEach((item, i) => {
      for (const [key, to] of Object.entries(named[item.name] ?? {})) found[`${list}[${i}].${key}`] = to;
    });
  }
  return { found, full, x, now };
}

function place({ full, x, now }) {
  const handle = part("handle"), { facts, value } = at;
  handle.style.left = `${full.xaxis._offset + full.xaxis.l2p(x)}px`;
  handle.style.top = `${full._size.t}px`;
  handle.style.height = `${full._size.h}px`;
  handle.style.setProperty("--knob", `${full.yaxis._length}px`);
  handle.hidden = false;
  const values = { valuemin: Math.min(facts.cuts[0], value), valuemax: Math.max(facts.cuts.at(-1), value), valuenow: value,
    valuetext: `${withUnit(value)}: yes ${rows(now.yes)}, no ${rows(facts.rows - now.yes)}, ${whole(now.wrong)} wrong` };
  for (const [key, to] of Object.entries(values)) handle.setAttribute(`aria-${key}`, to);
}

function show() {
  if (at.drawn) return;
  at.drawn = requestAnimationFrame(() => {
    at.drawn = 0;
    if (!at.figure.isConnected) return;
    const now = changes();
    window.Plotly.relayout(at.figure, now.found);
    place(now);
  });
}

// ---- cost of the threshold, once it rests

function cost() {
  const { facts, stop, value } = at;
  const { wrong } = counts(at);
  const [there, own] = [withUnit(value), written(facts.own)];
  if (stop === facts.at) return `At ${there} every row of this node gets the same answer as at ${own}.`;
  const more = wrong - facts.now;
  const than = more === 0 ? `as many as at ${own}` : `${whole(Math.abs(more))} ${more > 0 ? "more" : "fewer"} than at ${own}`;
  const all = stop < 0 ? "all rows answer no, " : stop === facts.cuts.length ? "all rows with a value answer yes, " : "";
  return `At ${there}, with the rest of the tree as it is: ${all}${rows(wrong)} of this node wrong, ${than}.`;
}

function settle() {
  const { facts, stop, value } = at;
  const away = value !== facts.own;
  part("how").hidden = away;
  part("says").textContent = away ? `${cost()} The model stays as it is.` : "";
  const form = part("hold"), hold = form.querySelector("[data-hold]");
  form.hidden = !away;
  form.elements.threshold.value = String(value);
  if (hold) hold.hidden = stop < 0 || stop === facts.cuts.length;
}

function to(stop, value) {
  Object.assign(at, { stop, value });
  part("try").value = value === at.facts.own ? part("try").dataset.own : String(value).replace("-", "−");
  show();
  if (!part("hold").hidden) settle(); // what is said is true of the line as it stands
}

function step(by) {
  const stop = Math.min(at.facts.cuts.length - 1, Math.max(0, at.stop + by));
  to(stop, at.facts.cuts[stop]);
}

function back() {
  to(at.facts.at, at.facts.own);
  settle();
}

// ---- pointer

let dragging = null; // where on the handle the pointer went down, from its middle
const handled = (event) => at && event.target.id === "threshold-handle";

document.addEventListener("pointerdown", (event) => {
  if (!handled(event) || event.button !== 0) return;
  const box = event.target.getBoundingClientRect();
  dragging = event.clientX - (box.left + box.width / 2);
  event.target.setPointerCapture(event.pointerId);
  event.target.focus({ preventScroll: true });
  event.preventDefault();
});
document.addEventListener("pointermove", (event) => {
  if (dragging === null || !handled(event)) return;
  const axis = at.figure._fullLayout.xaxis;
  const stop = nearest(at.facts.cuts, axis.p2l(event.clientX - dragging - at.figure.getBoundingClientRect().left - axis._offset));
  if (stop !== at.stop) to(stop, at.facts.cuts[stop]);
});
function released() {
  if (dragging === null) return;
  dragging = null;
  if (at) settle();
}
document.addEventListener("pointerup", released);
document.addEventListener("pointercancel", released);

// ---- keys

document.addEventListener("keydown", (event) => {
  if (!handled(event) || event.altKey || event.ctrlKey || event.metaKey) return;
  const by = event.shiftKey ? 10 : 1, last = at.facts.cuts.length;
  const steps = { ArrowLeft: -by, ArrowDown: -by, ArrowRight: by, ArrowUp: by, PageDown: -10, PageUp: 10, Home: -last - 1, End: last + 1 };
  if (event.key === "Escape") { dragging = null; back(); }
  else if (event.key in steps) step(steps[event.key]);
  else return;
  event.preventDefault();
  event.stopPropagation();
}, true);
document.addEventListener("keyup", (event) => {
  if (handled(event) && dragging === null) settle();
});

// ---- typing

document.addEventListener("input", (event) => {
  if (event.target.id !== "threshold-try" || !at) return;
  const { value: text, dataset } = event.target;
  const value = text === dataset.own ? at.facts.own : typedNumber(text, dataset.unit, dataset.decimalComma === "1");
  event.target.setAttribute("aria-invalid", String(text.trim() !== "" && Number.isNaN(value)));
  if (Number.isNaN(value)) {
    part("says").textContent = text.trim() === "" ? "" : "This is not a number with one meaning.";
    return;
  }
  Object.assign(at, value === at.facts.own ? { stop: at.facts.at, value } : typed(value));
  show();
  settle();
});
document.addEventListener("keydown", (event) => {
  if (event.target.id === "threshold-try" && event.key === "Escape" && at) back();
});

document.addEventListener("click", (event) => {
  if (!at || !event.target.closest("[data-back]")) return;
  back();
  part("handle").focus({ preventScroll: true });
});

// ---- drawing, or redrawing in another width or theme

document.addEventListener("octweb:drawn", ({ target }) => {
  const facts = target.layout?.meta;
  if (target.id !== "question-figure" || facts?.kind !== "threshold") return;
  if (at?.figure !== target) at = { figure: target, facts, stop: facts.at, value: facts.own, drawn: 0 };
  show();
});
