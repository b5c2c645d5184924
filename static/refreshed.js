// Keep user input while live parts of the page refresh.
"use strict";

{
  // identity of a form
  const hidden = (form) => [...form.querySelectorAll("input[type=hidden]:not([name=csrfmiddlewaretoken])")].map((e) => `${e.name}=${e.value}`);

  // A button that is replaced between its press and its release would lose the click: it goes to the one that took its place,
  // if that one asks for the same and is under the pointer, or has the keyboard.
  (() => {
    const BUTTONS = "button, summary, input[type=checkbox], input[type=radio]";
    let pressed = null;

    const words = (e) => [e.tagName, e.id, e.name, e.value, e.href, e.textContent.trim(), e.form?.getAttribute("action")].join();

    // of a form that was replaced as a whole the hidden fields say what its button does
    function press(element) {
      const form = element?.form;
      pressed = element && { element, words: words(element), form, hidden: form && hidden(form).join() };
    }
    function same(now) {
      return now && !now.disabled && words(now) === pressed.words && (now.form === pressed.form || hidden(now.form).join() === pressed.hidden);
    }
    function release(event, now) {
      const replaced = pressed && !pressed.element.isConnected && same(now);
      pressed = null;
      if (replaced) now.dispatchEvent(new MouseEvent("click", event));
    }

    const under = (event, also = "") => event.target.closest?.(also + BUTTONS);
    document.addEventListener("pointerdown", (event) => press(event.pointerType === "mouse" && event.button === 0 ? under(event, "a[href], ") : null), true);
    document.addEventListener("pointerup", (event) => release(event, under(event, "a[href], ")), true);
    document.addEventListener("keydown", (event) => { if (event.key === " " && !event.repeat) press(under(event)); }, true);
    document.addEventListener("keyup", (event) => { if (event.key === " ") release(event, document.activeElement?.closest(BUTTONS)); }, true);
  })();

  // A refreshed part keeps its state: the focus, scroll positions, what is unfolded,
  // and, unless its own form sent the request, changed fields with their cursor.
  (() => {
    const PARTS = '[hx-trigger*="every "], [hx-trigger*="load delay:"]';
    const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";
    const FIELDS = "input:not([type=hidden], [type=file]), select, textarea";
    const name = (e) => `${e.tagName} ${e.id || (e.getAttribute("aria-label") ?? e.getAttribute("name") ?? e.textContent.trim())}`;
    // equal names keep their order
    const like = (part, selector, wanted) => [...part.querySelectorAll(selector)].filter((e) => name(e) === wanted);
    let kept = null;

    function place(part, selector, element) {
      const wanted = name(element);
      return { selector, wanted, at: like(part, selector, wanted).indexOf(element) };
    }
    const find = (part, { selector, wanted, at }) => like(part, selector, wanted)[at];

    const fields = (part) => [...part.querySelectorAll(FIELDS)].filter((field) => field.form);
    const ticked = (field) => field.matches("[type=checkbox], [type=radio]");
    const key = (field) => [field.form.getAttribute("action"), ...hidden(field.form), field.name, ticked(field) && field.value].join();
    function changed(field) {
      if (ticked(field)) return field.checked !== field.defaultChecked;
      if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
      return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
    }
    const typed = (field) => (
      { key: key(field), value: field.value, checked: field.checked, cursor: "selectionStart" in field && [field.selectionStart, field.selectionEnd] });
    function type(field, { value, checked, cursor }) {
      if (ticked(field)) field.checked = checked;
      else field.value = value;
      if (cursor && cursor[0] !== null && document.activeElement === field) field.setSelectionRange(...cursor);
    }

    document.addEventListener("htmx:beforeSwap", ({ detail }) => {
      const part = detail.target;
      kept = null;
      if (!detail.shouldSwap || !part?.matches?.(PARTS)) return;
      const focused = document.activeElement;
      kept = {
        id: part.id,
        focus: part.contains(focused) ? place(part, FOCUSABLE, focused) : null,
        scrolled: [...part.querySelectorAll("[tabindex]")].filter((e) => e.scrollLeft || e.scrollTop)
          .map((e) => [place(part, "[tabindex]", e), e.scrollLeft, e.scrollTop]),
        unfolded: [...part.querySelectorAll("details[open] > summary")].map((e) => place(part, "details > summary", e)),
        typed: detail.requestConfig.elt === part ? fields(part).filter(changed).map(typed) : [],
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
      for (const one of kept.typed) {
        const field = fields(part).find((now) => key(now) === one.key);
        if (field) type(field, one);
      }
      kept = null;
    });
  })();
}
