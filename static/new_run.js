// New run: choose cards by keys, filter lists, add lines, and keep input typed during a request.
"use strict";

(() => {
  const sent = new Map();  // values of the running request, by field

  function form() { return document.getElementById("run-form"); }

  function entries() {
    const values = new Map();
    for (const [name, value] of new FormData(form())) values.set(name, values.has(name) ? `${values.get(name)}\n${value}` : value);
    return values;
  }

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.target.id !== "run-form") return;
    sent.clear();
    for (const [name, value] of entries()) sent.set(name, value);
  });

  let open = [];
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.requestConfig?.elt?.id !== "run-form") return;
    // fields changed during the request keep their new values
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
    for (const [name, value] of typed) restoreField(name, value);
    for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
    const state = document.getElementById("form-state");
    for (const [name, value] of [["method", state.dataset.method], ["ask", state.dataset.ask], ["sure", state.dataset.sure]]) {
      // a card chosen during the request stays chosen; the next request sends it
      const chosen = new FormData(form()).get(name);
      if (sent.has(name) && sent.get(name) !== chosen) continue;
      for (const radio of form().querySelectorAll(`input[type="radio"][name="${name}"]`)) radio.checked = radio.value === value;
    }
  }

  function restoreField(name, value) {
    const ticked = (value ?? "").split("\n");
    for (const field of form().querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
      if (field.type === "checkbox" || field.type === "radio") field.checked = value !== undefined && ticked.includes(field.value);
      else if (value !== undefined && ticked.length === 1) field.value = value;
    }
  }

  // 1 to 4, Q and P choose a card unless a field has the focus
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
    const text = filter.value.trim().toLowerCase();
    for (const label of filter.parentElement.querySelectorAll("label[data-name]")) label.hidden = !label.dataset.name.includes(text);
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
