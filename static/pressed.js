// A button that is replaced between its press and its release would lose the click: it goes to the one that took its place,
// if that one asks for the same and is under the pointer, or has the keyboard.
"use strict";

(() => {
  const BUTTONS = "button, summary, input[type=checkbox], input[type=radio]";
  let pressed = null;

  const hidden = (form) => [...form.querySelectorAll("input[type=hidden]:not([name=csrfmiddlewaretoken])")].map((e) => `${e.name}=${e.value}`);
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
