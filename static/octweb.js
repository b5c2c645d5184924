// What every page does: theme, copy buttons, selects that submit their form, menus that close.
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

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// a popover opens where the browser puts it; keep it beside its badge
document.addEventListener("toggle", (event) => {
  const tip = event.target;
  if (!tip.matches?.(".tip") || event.newState !== "open") return;
  const badge = document.querySelector(`[popovertarget="${tip.id}"]`).getBoundingClientRect();
  tip.style.top = `${badge.bottom + 6}px`;
  tip.style.left = `${Math.max(8, Math.min(badge.left, window.innerWidth - tip.offsetWidth - 8))}px`;
}, true);
