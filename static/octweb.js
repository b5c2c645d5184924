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
