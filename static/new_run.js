// New run: cards by keys, lists that filter, lines that are added, and nothing lost that is typed while an answer is under way.
"use strict";

(() => {
  const sent = new Map();  // what the request that is under way has sent, by field

  function form() { return document.getElementById("run-form"); }

  function entries() {
    const found = new Map();
    for (const [name, value] of new FormData(form())) found.set(name, found.has(name) ? `${found.get(name)}\n${value}` : value);
    return found;
  }

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.target.id !== "run-form") return;
    sent.clear();
    for (const [name, value] of entries()) sent.set(name, value);
  });

  let open = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig?.elt?.id !== "run-form") return;
    // fields that were changed since the request left keep what they have now
    typed.clear();
    const now = entries();
    for (const name of new Set([...sent.keys(), ...now.keys()])) {
      if (name.startsWith("p_") && sent.get(name) !== now.get(name)) typed.set(name, now.get(name));
    }
    open = [...form().querySelectorAll("details[open]")].map((d) => d.id);
  });
  const typed = new Map();

  document.addEventListener("htmx:afterSettle", settle);
  document.addEventListener("htmx:oobAfterSwap", settle);
  function settle() {
    if (!form()) return;
    for (const [name, value] of typed) keep(name, value);
    for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
    const state = document.getElementById("form-state");
    for (const [name, value] of [["method", state.dataset.method], ["ask", state.dataset.ask], ["sure", state.dataset.sure]]) {
      // a card that was chosen since the request left stays chosen: the next request, which is about to leave, tells of it
      const chosen = new FormData(form()).get(name);
      if (sent.has(name) && sent.get(name) !== chosen) continue;
      for (const radio of form().querySelectorAll(`input[type="radio"][name="${name}"]`)) radio.checked = radio.value === value;
    }
  }

  function keep(name, value) {
    const ticked = (value ?? "").split("\n");
    for (const field of form().querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
      if (field.type === "checkbox" || field.type === "radio") field.checked = value !== undefined && ticked.includes(field.value);
      else if (value !== undefined && ticked.length === 1) field.value = value;
    }
  }

  // 1 to 4, Q and P choose a card where no field takes the key
  document.addEventListener("keydown", (event) => {
    if (!form() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input:not([type=radio]):not([type=checkbox]), select, textarea, dialog")) return;
    const radio = form().querySelector(`input[data-key="${event.key.toLowerCase().replace(/["\\]/g, "")}"]:not(:disabled)`);
    if (!radio) return;
    radio.focus();
    radio.click();
  });

  document.addEventListener("input", (event) => {
    const filter = event.target.closest("[data-filter-list]");
    if (!filter) return;
    event.stopPropagation();
    const wanted = filter.value.trim().toLowerCase();
    for (const label of filter.parentElement.querySelectorAll("label[data-name]")) label.hidden = !label.dataset.name.includes(wanted);
  }, true);

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add-pair]");
    if (!button) return;
    const lines = button.parentElement.querySelectorAll(".pair");
    const copy = lines[lines.length - 1].cloneNode(true);
    for (const select of copy.querySelectorAll("select")) {
      select.name = select.name.replace(/-(\d+)-([ab])$/, (_, n, side) => `-${Number(n) + 1}-${side}`);
      select.setAttribute("aria-label", select.getAttribute("aria-label").replace(/\d+$/, String(lines.length + 1)));
      select.value = "";
    }
    button.before(copy);
    copy.querySelector("select").focus();
  });
})();
