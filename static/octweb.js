// On every page: theme, copy buttons, selects that submit their form, menus, popovers.
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

// Escape closes a menu and returns the focus to it; losing the focus closes it, too
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

// after sorting or searching a list, focus the field that was used
(() => {
  const fieldKey = (id) => `${window.location.pathname} ${id}`;
  document.addEventListener("submit", (event) => {
    const field = document.activeElement;
    if (event.target.method !== "get" || !field.id || !event.target.contains(field)) return;
    try { sessionStorage.setItem("asked", fieldKey(field.id)); } catch { /* then the page begins at its top */ }
  });
  try {
    const stored = sessionStorage.getItem("asked") ?? "";
    sessionStorage.removeItem("asked");
    const field = document.getElementById(stored.split(" ").pop());
    if (field && stored === fieldKey(field.id)) field.focus();
  } catch { /* as above */ }
})();

// place a popover beside its badge
document.addEventListener("toggle", (event) => {
  const tip = event.target;
  if (!tip.matches?.(".tip") || event.newState !== "open") return;
  const badge = document.querySelector(`[popovertarget="${tip.id}"]`).getBoundingClientRect();
  tip.style.top = `${badge.bottom + 6}px`;
  tip.style.left = `${Math.max(8, Math.min(badge.left, window.innerWidth - tip.offsetWidth - 8))}px`;
}, true);

// focus the first invalid field of a refused form
if (document.activeElement === document.body) {
  const first = document.querySelector("main .invalid :is(input:not([type=hidden]), select, textarea)");
  (first?.closest(".invalid").querySelector("[aria-invalid=true]") ?? first)?.focus();
}

// After a page change by keyboard, focus the main action, or the empty field that it needs. Steps that end, approve or serve something
// are marked: a second press of Enter must not take them.
(() => {
  const ACTION = "main .btn.primary:not([disabled]):not([data-deliberate] *)";
  const isVisible = (e) => e.getClientRects().length > 0;
  let byKeys = false;
  const focusAction = () => {
    if (document.activeElement !== document.body) return;
    const action = [...document.querySelectorAll(ACTION)].find(isVisible);
    const empty = [...(action?.form?.elements ?? [])].find((e) => e.required && !e.value && isVisible(e));
    (empty ?? action)?.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", () => { byKeys = true; }, true);
  document.addEventListener("pointerdown", () => { byKeys = false; }, true);
  document.addEventListener("octweb:ended", () => { if (byKeys) focusAction(); });
  try {
    window.addEventListener("pagehide", () => sessionStorage.setItem("by keys", byKeys ? "1" : ""));
    byKeys = sessionStorage.getItem("by keys") === "1";
    if (byKeys && !window.location.hash) focusAction();
  } catch { /* as above */ }
})();
