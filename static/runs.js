// Page of a run: redraw the chart when records arrive.
"use strict";

function clockText(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)}\u202fs`;
  const two = (n) => String(n).padStart(2, "0");
  const s = Math.floor(seconds);
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}\u202fmin`;
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}\u202fh`;
}

// run the clock between two responses
let clockStart = performance.now();
let drawn = "";
let ticks = 0;
function tick() {
  const clock = document.querySelector("[data-clock]");
  if (!clock) return;
  const seconds = parseFloat(clock.dataset.clock) + (performance.now() - clockStart) / 1000;
  clock.textContent = clockText(seconds);
  ticks += 1;
  // extend the lines while nothing is found, but not under the pointer
  const chart = document.getElementById("progress-chart");
  if (ticks % 5 === 0 && chart && !chart.matches(":hover") && !document.hidden) reload(chart);
}
setInterval(tick, 1000);

function reload(chart) {
  chart.dispatchEvent(new CustomEvent("octweb:reload", { bubbles: true }));
}

function redrawChart() {
  const live = document.getElementById("live");
  const chart = document.getElementById("progress-chart");
  if (!live || !chart) return;
  const known = `${live.dataset.records} ${live.dataset.finished}`;  // when finished, the lines end with the search
  if (known === drawn) return;
  drawn = known;
  reload(chart);
}

document.addEventListener("htmx:afterSwap", () => {
  clockStart = performance.now();
  redrawChart();
});

// a dot of the chart is a tree; the chosen one is marked, and stays chosen during refreshes
let chosen = "";
function choose(line) {
  chosen = line === undefined || line === null ? "" : String(line);
  const chart = document.getElementById("progress-chart");
  if (!chart) return;
  chart.dataset.figureUrl = chart.dataset.figureUrl.split("?")[0] + (chosen ? `?at=${chosen}` : "");
  reload(chart);
}

document.addEventListener("octweb:point", (event) => {
  if (event.target.id !== "progress-chart" || event.detail.id === undefined || event.detail.id === null) return;
  const url = `${window.location.pathname}trees/${event.detail.id}/`;
  window.htmx?.ajax("GET", url, { target: "#incumbent", swap: "outerHTML" });
});

document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "incumbent" || event.detail.target?.id === "incumbent") choose(document.getElementById("incumbent").dataset.line);
});

document.addEventListener("htmx:configRequest", (event) => {
  if (event.target.id === "live" && chosen) event.detail.parameters.at = chosen;
});
