// Workbench: arrow keys move between cards; P, X, L and A press their buttons.
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.altKey) return;
  const bench = document.getElementById("bench");
  if (!bench) return;
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && key === "z") {
    const button = bench.querySelector(`button[name="to"][value="${event.shiftKey ? "redo" : "undo"}"]`);
    if (button && !button.disabled) { event.preventDefault(); button.click(); }
    return;
  }
  if (event.ctrlKey || event.metaKey) return;
  const action = bench.querySelector(`[data-key="${key}"]`);
  if (action && !action.disabled) { event.preventDefault(); action.click(); return; }
  const cards = [...bench.querySelectorAll("[data-place]")];
  const at = bench.dataset.at === "root" ? "" : bench.dataset.at;
  const target = { arrowup: at.slice(0, -1), arrowleft: at + "y", arrowright: at + "n", arrowdown: at + "y" }[key];
  if (target === undefined) return;
  const card = cards.find((c) => c.dataset.place === (target || "root"));
  if (card && target !== at) { event.preventDefault(); card.click(); }
});

// Delay refreshes while a threshold is dragged: they would replace the handle under the pointer.
const moved = { now: false, missed: false };
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!moved.now || event.detail.target.id !== "bench") return;
  event.detail.shouldSwap = false;
  moved.missed = true;
});
function released() {
  moved.now = false;
  const bench = document.getElementById("bench");
  if (moved.missed && bench) htmx.trigger(bench, "refresh");
  moved.missed = false;
}

// Threshold of the chosen split: moved by pointer or keys with live counts; releasing it adds a constraint.
function cutter(box) {
  const data = JSON.parse(document.getElementById("spread").textContent);
  const picture = box.querySelector(".cut-picture"), svg = box.querySelector("svg"), handle = box.querySelector(".cut-handle");
  const text = box.querySelector(".cut-text"), form = box.nextElementSibling, field = form.querySelector("[name=value]"), start = data.now, bins = data.counts;
  const most = Math.max(...bins.map((b) => b.reduce((a, c) => a + c, 0)));
  const width = 400 / bins.length;
  // its position before a refresh, if it was moved and is not dragged
  const restored = data.values.findIndex((value) => String(value) === field.value);
  let now = restored < 0 ? start : restored, dragging = false, touched = now !== start;
  bins.forEach((bin, i) => {
    let top = 90;
    bin.forEach((rows, c) => {
      if (!rows) return;
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), height = (86 * rows) / most;
      top -= height;
      const shape = { x: i * width, y: top, width: Math.max(width * 0.85, 0.4), height, "data-bin": i, "data-class": c };
      for (const [key, value] of Object.entries(shape)) bar.setAttribute(key, value);
      svg.append(bar);
    });
  });
  const sums = (from, to) => data.classes.map((_, c) => bins.slice(from, to).reduce((a, b) => a + b[c], 0));
  const countsText = (counts) => `${counts.reduce((a, b) => a + b, 0)} rows (${data.classes.map((name, c) => `${name} ${counts[c]}`).join(", ")})`;
  const show = () => {
    handle.style.left = `${(100 * (now + 1)) / bins.length}%`;
    if (touched) field.value = data.values[now];
    const value = field.selectedOptions?.[0]?.text ?? field.value; // a column of ranks has a menu of words
    const yes = sums(0, now + 1), no = sums(now + 1, bins.length);
    handle.setAttribute("aria-valuenow", now);
    handle.setAttribute("aria-valuetext", `${value}: ${countsText(yes)} yes`);
    const placed = data.empty?.some((rows) => rows) ? `; empty ${countsText(data.empty)}, on the side that the search finds best` : "";
    text.textContent = `${field.selectedOptions ? "at most" : "≤"} ${value}: yes ${countsText(yes)}; no ${countsText(no)}${placed}`;
    svg.querySelectorAll("rect").forEach((bar) => bar.setAttribute("class", `c${data.colours[bar.dataset.class]} ${Number(bar.dataset.bin) <= now ? "yes" : "no"}`));
  };
  const to = (stop) => { touched = moved.now = true; now = Math.min(data.values.length - 1, Math.max(0, stop)); show(); };
  const hold = () => { if (touched && now !== start) form.requestSubmit(form.querySelector("[data-hold]")); else released(); };
  const under = (event) => {
    const edge = picture.getBoundingClientRect();
    to(Math.round(((event.clientX - edge.left) / edge.width) * bins.length) - 1);
  };
  picture.addEventListener("pointerdown", (event) => {
    dragging = moved.now = true; picture.setPointerCapture(event.pointerId); handle.focus(); under(event); event.preventDefault();
  });
  picture.addEventListener("pointermove", (event) => { if (dragging) under(event); });
  picture.addEventListener("pointerup", () => { if (dragging) { dragging = false; hold(); } });
  picture.addEventListener("pointercancel", () => { dragging = false; to(start); released(); });
  handle.addEventListener("blur", (event) => { if (!dragging && !form.contains(event.relatedTarget)) released(); });
  handle.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, Home: 0,
      End: data.values.length - 1, PageUp: now + 10, PageDown: now - 10, Escape: start }[event.key];
    if (event.key === "Enter") hold();
    else if (step === undefined) return;
    else to(step);
    if (event.key === "Escape" && !dragging) released();
    event.preventDefault();
    event.stopPropagation();
  });
  show();
}
function cutters() {
  document.querySelectorAll("[data-cutter]:not([data-ready])").forEach((box) => { box.dataset.ready = "yes"; cutter(box); });
}
// at once: a threshold can be dragged between the swap and its settling
document.addEventListener("htmx:afterSwap", cutters);
document.addEventListener("htmx:afterSettle", cutters);
cutters();

// Fit the picture of the draft to its card while it stays readable; phones show the text instead.
const LEAST = 0.6;
let textOpen = null; // as the reader left it
function fitDraft() {
  const draft = document.querySelector(".draft"), text = document.querySelector(".as-places");
  if (text) text.open = textOpen ?? (text.open || !draft || getComputedStyle(draft).display === "none");
  if (!draft || !draft.clientWidth) return;
  const scale = Math.max(LEAST, Math.min(1, draft.clientWidth / draft.dataset.width));
  const layer = draft.firstElementChild;
  layer.style.transform = `scale(${scale})`;
  layer.style.marginLeft = `${Math.max(0, (draft.clientWidth - scale * draft.dataset.width) / 2)}px`;
  draft.style.height = `${scale * draft.dataset.height + 24}px`;
}
document.addEventListener("click", (event) => {
  const summary = event.target.closest(".as-places > summary");
  if (summary) textOpen = !summary.parentElement.open;
});
document.addEventListener("htmx:afterSettle", fitDraft);
window.addEventListener("resize", fitDraft);
fitDraft();
