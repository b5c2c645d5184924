// Keys of the workbench: arrows walk over the cards, P X L A do what the buttons with these keys do.
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.altKey) return;
  const bench = document.getElementById("bench");
  if (!bench) return;
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && key === "z") {
    const button = bench.querySelector(`button[name="to"][value="${event.shiftKey ? "redo" : "undo"}"]`);
    if (button && !button.disabled) { event.preventDefault(); button.click(); }
    return;
  }
  if (event.ctrlKey || event.metaKey) return;
  const action = bench.querySelector(`[data-key="${key}"]`);
  if (action && !action.disabled) { event.preventDefault(); action.click(); return; }
  const cards = [...bench.querySelectorAll("[data-place]")];
  const at = bench.dataset.at === "root" ? "" : bench.dataset.at;
  const wanted = { arrowup: at.slice(0, -1), arrowleft: at + "y", arrowright: at + "n", arrowdown: at + "y" }[key];
  if (wanted === undefined) return;
  const card = cards.find((c) => c.dataset.place === (wanted || "root"));
  if (card && wanted !== at) { event.preventDefault(); card.click(); }
});
