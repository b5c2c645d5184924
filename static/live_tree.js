// A tree that can be touched: a slider for each column; the way through the picture and the answer follow at once.
"use strict";

for (const host of document.querySelectorAll("[data-live-tree]")) {
  const tree = JSON.parse(document.getElementById(host.dataset.liveTree).textContent);
  const make = (name, attributes = {}, ...content) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...content);
    return node;
  };
  const STEPS = 100, AROUND = 3; // the slider ends this many usual changes beyond the lines that the tree draws

  // the lines that the tree draws in a column of numbers
  const linesOf = (f) => tree.nodes.flatMap((v) => (v.t?.f === f ? [v.t.lo, v.t.h] : [])).filter((end) => typeof end === "number");

  function control(column, f) {
    const id = `live-${f}`, label = make("label", { for: id }, column.shown);
    if (column.categories) return { label, field: make("select", { id }, ...column.categories.map((name, code) => make("option", { value: code }, name))) };
    const ends = linesOf(f), reach = AROUND * column.scale;
    const low = Math.max(Math.min(0, ...ends), Math.min(...ends) - reach), high = Math.max(...ends) + reach;
    const places = Math.min(column.decimals ?? 6, Math.max(0, Math.ceil(Math.log10(STEPS / (high - low)))));
    const attributes = { id, type: "range", min: low.toFixed(places), max: high.toFixed(places), step: (10 ** -places).toFixed(places) };
    return { label, field: make("input", { ...attributes, value: ((low + Math.min(...ends)) / 2).toFixed(places) }), output: make("output", { for: id }) };
  }

  const controls = tree.columns.map(control);
  const picture = make("div", { class: "tree-picture" }), answer = make("p", { class: "live-answer", role: "status" });
  const fields = make("div", { class: "live-fields" }, ...controls.map(({ label, field, output }) => make("div", {}, label, output ?? "", field)));
  const swatch = (k) => make("i", { class: `sw c${(k % 8) + 1}`, "aria-hidden": "true" });
  const legend = make("p", { class: "note" }, ...tree.classes.flatMap((name, k) => [swatch(k), ` ${name} \u2003`]), "left: yes, right: no");
  host.replaceChildren(fields, make("div", { class: "live-result" }, make("div", {}, picture), legend, answer));

  function show() {
    const row = controls.map(({ field }) => Number(field.value));
    controls.forEach(({ field, output }, f) => {
      if (!output) return;
      output.value = `${Number(field.value).toLocaleString("en", { maximumFractionDigits: 6 })}${tree.columns[f].unit}`;
      field.setAttribute("aria-valuetext", output.value);
    });
    const way = TreeEngine.path(tree, row), leaf = tree.nodes[way[way.length - 1]], name = tree.classes[leaf.l];
    TreePicture.draw(picture, tree, way);
    answer.replaceChildren(
      swatch(leaf.l), " Answer: ", make("b", {}, name),
      `. Of the ${leaf.r.toLocaleString("en")} known cases that end here, ${leaf.c[leaf.l].toLocaleString("en")} were ${name}.`,
    );
  }

  host.addEventListener("input", show);
  show();
}
