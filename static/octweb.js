// What every page does: theme, copy buttons, selects that submit their form, menus that close, live parts that keep the reader's place.
"use strict";

document.addEventListener("click", (event) => {
  const theme = event.target.closest("#theme");
  if (theme) {
    const dark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", document.documentElement.dataset.theme); } catch { /* as above */ }
    document.dispatchEvent(new CustomEvent("octweb:theme"));
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const source = document.querySelector(copy.dataset.copy);
    navigator.clipboard?.writeText(source.innerText).then(() => {
      const before = copy.textContent;
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = before; }, 1500);
    });
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// a menu closes with Escape, which gives the focus back to it, and when the focus has left it
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  const inside = menu.contains(document.activeElement);
  menu.open = false;
  if (inside) menu.querySelector("summary").focus();
});
document.addEventListener("focusin", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm?.replace(/\s+/g, " ");
  if (question && !window.confirm(question)) event.preventDefault();
});

// a list that was sorted or searched comes back with the focus on the field that asked for it
(() => {
  const here = (id) => `${window.location.pathname} ${id}`;
  document.addEventListener("submit", (event) => {
    const field = document.activeElement;
    if (event.target.method !== "get" || !field.id || !event.target.contains(field)) return;
    try { sessionStorage.setItem("asked", here(field.id)); } catch { /* then the page begins at its top */ }
  });
  try {
    const asked = sessionStorage.getItem("asked") ?? "";
    sessionStorage.removeItem("asked");
    const field = document.getElementById(asked.split(" ").pop());
    if (field && asked === here(field.id)) field.focus();
  } catch { /* as above */ }
})();

// a popover opens where the browser puts it; keep it beside its badge
document.addEventListener("toggle", (event) => {
  const tip = event.target;
  if (!tip.matches?.(".tip") || event.newState !== "open") return;
  const badge = document.querySelector(`[popovertarget="${tip.id}"]`).getBoundingClientRect();
  tip.style.top = `${badge.bottom + 6}px`;
  tip.style.left = `${Math.max(8, Math.min(badge.left, window.innerWidth - tip.offsetWidth - 8))}px`;
}, true);

// a form that was refused begins at its first marked field
if (document.activeElement === document.body) document.querySelector("main .invalid :is(input:not([type=hidden]), select, textarea)")?.focus();

// a part that is fetched again and again keeps what a reader has there: the focus, how far a table is scrolled, what is unfolded
(() => {
  const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
  const name = (e) => `${e.tagName} ${e.id || (e.getAttribute("aria-label") ?? e.getAttribute("name") ?? e.textContent.trim())}`;
  // equal names stand in the same order before and after
  const like = (part, selector, wanted) => [...part.querySelectorAll(selector)].filter((e) => name(e) === wanted);
  let kept = null;

  function place(part, selector, element) {
    const wanted = name(element);
    return { selector, wanted, at: like(part, selector, wanted).indexOf(element) };
  }
  const find = (part, { selector, wanted, at }) => like(part, selector, wanted)[at];

  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.target;
    kept = null;
    if (!event.detail.shouldSwap || !part?.matches?.('[hx-trigger*="every "], [hx-trigger*="load delay:"]')) return;
    const focused = document.activeElement;
    kept = {
      id: part.id,
      focus: part.contains(focused) ? place(part, FOCUSABLE, focused) : null,
      scrolled: [...part.querySelectorAll("[tabindex]")].filter((e) => e.scrollLeft || e.scrollTop)
        .map((e) => [place(part, "[tabindex]", e), e.scrollLeft, e.scrollTop]),
      unfolded: [...part.querySelectorAll("details[open] > summary")].map((e) => place(part, "details > summary", e)),
    };
  });

  document.addEventListener("htmx:afterSwap", () => {
    const part = kept && document.getElementById(kept.id);
    if (!part) return;
    for (const where of kept.unfolded) {
      const summary = find(part, where);
      if (summary) summary.parentElement.open = true;
    }
    for (const [where, left, top] of kept.scrolled) find(part, where)?.scrollTo({ left, top, behavior: "instant" });
    if (kept.focus) find(part, kept.focus)?.focus({ preventScroll: true });
    kept = null;
  });
})();
