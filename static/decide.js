// The decision page: print, and the record as a file by the same form, so that no value comes into an address.
"use strict";

document.addEventListener("click", (event) => {
  const wish = event.target.closest("[data-decide]")?.dataset.decide;
  if (wish === "print") window.print();
  if (wish === "json") {
    const form = document.getElementById("ask"), field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: "format", value: "json" });
    form.append(field);
    form.requestSubmit();
    field.remove();
  }
});

// a row number explains that row; typing a value explains what is typed
document.addEventListener("input", (event) => {
  if (event.target.name?.startsWith("try-")) {
    const number = document.getElementById("row-number");
    if (number) number.value = "";
  }
});
