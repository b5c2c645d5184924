// What a person does while a part of the page refreshes itself is not lost: a press, and what is typed.
"use strict";

{
  // what a form is about
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

  // Fields that differ from what the server said keep their values in the same form of the refreshed part, and the cursor its place.
  (() => {
    const FIELDS = "input:not([type=hidden], [type=file]), select, textarea";
    let typed = [];

    const ticked = (field) => field.matches("[type=checkbox], [type=radio]");
    const key = (field) => [field.form.getAttribute("action"), ...hidden(field.form), field.name, ticked(field) && field.value].join();
    function changed(field) {
      if (ticked(field)) return field.checked !== field.defaultChecked;
      if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
      return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
    }
    function restore(field, { value, checked, at }) {
      if (ticked(field)) field.checked = checked;
      else field.value = value;
      if (at && at[0] !== null && document.activeElement === field) field.setSelectionRange(...at);
    }

    document.addEventListener("htmx:beforeSwap", ({ detail }) => {
      const itself = detail.requestConfig?.verb === "get" && detail.requestConfig.elt === detail.target;
      typed = itself ? [...detail.target.querySelectorAll(FIELDS)].filter((field) => field.form && changed(field)).map((field) => (
        { key: key(field), value: field.value, checked: field.checked, at: "selectionStart" in field && [field.selectionStart, field.selectionEnd] })) : [];
    });
    document.addEventListener("htmx:afterSwap", () => {
      for (const one of typed) {
        const field = [...document.querySelectorAll(FIELDS)].find((now) => now.form && key(now) === one.key);
        if (field) restore(field, one);
      }
      typed = [];
    });
  })();
}
