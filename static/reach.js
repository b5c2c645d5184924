// Frontier of sensitivity and specificity: slider and points choose the constraint of a new run.
"use strict";

const rows = [...document.querySelectorAll("tr[data-reach]")];
const slider = document.getElementById("reach-slider");
const field = document.getElementById("id_p_sensitivity");

function chooseReach(place) {
  const row = rows[place];
  if (!row) return;
  const output = document.getElementById("reach-words");
  const link = document.getElementById("reach-link");
  slider.value = String(place);
  slider.setAttribute("aria-valuetext", row.dataset.words);
  output.textContent = row.dataset.words;
  if (link) link.setAttribute("href", `${link.getAttribute("href").split("?")[0]}?${row.dataset.query}`);
  if (field) field.value = row.dataset.required;
  const figure = document.getElementById("reach-figure");
  const trees = figure?.data ? figure.data.length - 1 : -1;
  if (trees >= 0) window.Plotly.restyle(figure, { "marker.size": [rows.map((_, i) => (i === place ? 13 : rows.length <= 40 ? 9 : 6))] }, [trees]);
}

if (slider && rows.length) {
  // show the constraint of the link
  const linked = field?.value ? rows.findIndex((row) => Number(row.dataset.required) >= Number(field.value)) : -1;
  if (linked >= 0) slider.value = String(linked);
  slider.addEventListener("input", () => chooseReach(Number(slider.value)));
  document.addEventListener("octweb:point", (event) => {
    if (event.target.id !== "reach-figure") return;
    chooseReach(event.detail.id);
    const link = document.getElementById("reach-link");
    if (link && !field) window.location.assign(link.href);
  });
}
