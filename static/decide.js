// Decision page: print, and download the record by POST, so that no value appears in a URL.
"use strict";

document.addEventListener("click", (event) => {
  const action = event.target.closest("[data-decide]")?.dataset.decide;
  if (action === "print") window.print();
  if (action === "json") {
    const form = document.getElementById("ask"), field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: "format", value: "json" });
    form.append(field);
    form.requestSubmit();
    field.remove();
  }
});

// a typed value clears the row number
document.addEventListener("input", (event) => {
  if (event.target.name?.startsWith("try-")) {
    const number = document.getElementById("row-number");
    if (number) number.value = "";
  }
});
