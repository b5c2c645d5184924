// Live leaderboard: run the clock between two responses, and redraw the picture when a candidate ends.
"use strict";

(() => {
  let start = performance.now();
  let seen = document.getElementById("live")?.dataset.seen;
  function clockText(seconds) {
    const s = Math.floor(seconds);
    const two = (n) => String(n).padStart(2, "0");
    if (s < 60) return `${s}\u202fs`;
    if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}\u202fmin`;
    return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}\u202fh`;
  }
  setInterval(() => {
    const clock = document.querySelector("[data-clock]");
    if (clock) clock.textContent = clockText(parseFloat(clock.dataset.clock) + (performance.now() - start) / 1000);
  }, 1000);
  document.addEventListener("htmx:afterSwap", () => {
    start = performance.now();
    const live = document.getElementById("live");
    if (!live || live.dataset.seen === seen) return;
    seen = live.dataset.seen;
    document.getElementById("experiment-chart")?.dispatchEvent(new CustomEvent("octweb:reload", { bubbles: true }));
  });
})();
