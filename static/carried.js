// Standalone file of a model: predict typed values or a dropped CSV, and show the smallest change, without a network.
"use strict";

(() => {
  const { tree, meta } = JSON.parse(document.getElementById("model").textContent);
  const { make, percent, number, changes, measure, beyondPath } = Questionnaire;
  const WORDS = [["free", "may change"], ["up", "only up"], ["down", "only down"], ["whole", "whole numbers"], ["up,whole", "up, whole"],
    ["down,whole", "down, whole"], ["never", "never"]];
  const BY_KIND = { categorical: ["free", "never"], binary: ["free", "up", "down", "never"] };
  const LISTED = 200, SHOWN = 20;

  const swatch = (k) => make("i", { class: `sw c${(k % 8) + 1}`, "aria-hidden": "true" });

  function input(column, f) {
    const id = `v${f}`, named = { id, name: id };
    const choices = column.kind === "binary" ? ["0", "1"] : column.ranks ?? column.categories?.filter((_, code) => code !== column.missing);
    if (!choices || choices.length > LISTED) return make("input", { ...named, inputmode: choices ? "text" : "decimal", autocomplete: "off" });
    return make("select", named, make("option", { value: "" }, "no value"), ...choices.map((c) => make("option", { value: c }, c || "(empty)")));
  }

  // return the option that matches the owner's permission
  function wordOf(own) {
    if (!own) return "free";
    if (!own.up && !own.down) return "never";
    return [own.up && !own.down ? "up" : "", own.down && !own.up ? "down" : "", own.whole ? "whole" : ""].filter(Boolean).join() || "free";
  }

  function permission(column, f) {
    const words = WORDS.filter(([value]) => BY_KIND[column.kind]?.includes(value) ?? true), word = wordOf(meta.permissions?.[f]);
    return make("select", { id: `m${f}`, "aria-label": `${column.shown} may change` }, ...words.map(([value, text]) => make("option", { value, selected: value === word }, text)));
  }

  function permitted(f) {
    const words = document.getElementById(`m${f}`).value.split(","), never = words.includes("never");
    return { up: !never && !words.includes("down"), down: !never && !words.includes("up"), whole: words.includes("whole"), codes: meta.permissions?.[f]?.codes ?? null };
  }

  function distance(test, row) {
    if (test.s) return Math.abs(TreeEngine.sum(test, row) - test.h);
    if (tree.columns[test.f].kind === "categorical" || tree.columns[test.f].ranks) return null;
    return Math.min(...[test.lo, test.h].filter((end) => end !== null && end !== undefined).map((end) => Math.abs(row[test.f] - end)));
  }

  function pathList(row) {
    const way = TreeEngine.path(tree, row);
    return make("ol", { class: "path" }, ...way.slice(0, -1).map((v, i) => {
      const node = tree.nodes[v], away = distance(node.t, row), unit = node.t.s ? "" : tree.columns[node.t.f].unit;
      const value = node.t.s ? TreeEngine.sumText(node.t, row) : TreeEngine.write(tree.columns[node.t.f], row[node.t.f]);
      const far = away === null || !Number.isFinite(away) ? "" : `, ${number(away)}${unit} from the line`;
      const empty = TreeEngine.emptyText(tree, node.t, row);
      if (empty) return make("li", {}, `${node.q}? ${empty}`);
      return make("li", {}, `${node.q}? Here ${value}: `, make("b", {}, way[i + 1] === node.y ? "yes" : "no"), far);
    }));
  }

  function flipLine(row, f, first) {
    return make("li", {}, `The answer would be `, make("b", {}, tree.classes[tree.nodes[f.leaf].l]), ` with ${changes(tree, row, f)} (size ${number(f.distance)}${first ? f.proved ? "; proved: no smaller permitted change does it" : "; not proved to be the smallest" : ""}).${beyondPath(tree, row, f)}`);
  }

  function answer() {
    const cells = tree.columns.map((_, f) => document.getElementById(`v${f}`).value), found = TreeEngine.predictCells(tree, cells);
    const host = document.getElementById("answer");
    if (found.leaf === null) { host.replaceChildren(make("p", { class: "msg error" }, `${found.why}.`)); return; }
    const v = tree.nodes[found.leaf], flips = TreeEngine.flip(tree, found.row, { permissions: tree.columns.map((_, f) => permitted(f)) });
    const head = make("h3", {}, swatch(v.l), ` ${tree.classes[v.l]} `, make("small", {}, `leaf ${found.leaf}`));
    const shares = v.c && v.r ? make("p", { class: "note2" }, tree.classes.map((c, k) => `${c} ${percent(v.c[k] / v.r)}`).join(" · "), ` of ${v.r.toLocaleString("en")} training rows`) : null;
    const list = [flips.flip, ...flips.alternatives].filter(Boolean);
    host.replaceChildren(...[head, shares, pathList(found.row), ...found.notes.map((n) => make("p", { class: "banner gap" }, n)), make("h3", {}, "What would change the answer"),
      list.length ? make("ul", {}, ...list.map((f, i) => flipLine(found.row, f, i === 0))) : make("p", {}, flips.reason),
      make("p", { class: "note2" }, `${list.length ? `${measure(tree, list)} What size 1 is was measured on ${meta.measured_on}. ` : ""}This is about the tree, not about what a person can do.`)].filter(Boolean));
    TreePicture.draw(document.getElementById("picture"), tree, TreePicture.wayTo(tree, found.leaf));
  }

  // ---- CSV

  const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  function answersOf(text) {
    const found = TreeEngine.predictCsv(tree, text);
    const lines = found.map((a, i) => (a.leaf === null ? `${i + 1},,` : `${i + 1},${cell(tree.classes[tree.nodes[a.leaf].l])},${a.leaf}`));
    return { found, csv: `${["row,label,leaf", ...lines].join("\n")}\n` };
  }

  // return each note once with its number of rows, the most frequent first
  function notesOf(found) {
    const counts = new Map();
    for (const note of found.flatMap((a) => a.notes)) counts.set(note, (counts.get(note) ?? 0) + 1);
    return [...counts].sort(([, a], [, b]) => b - a).map(([note, n]) => `${n.toLocaleString("en")} ${n === 1 ? "row" : "rows"}: ${note}`);
  }

  function file(chosen) {
    const host = document.getElementById("csv-answer");
    chosen.text().then((text) => {
      const { found, csv } = answersOf(text), said = notesOf(found), none = found.filter((a) => a.leaf === null);
      const counts = tree.classes.map((c, k) => [c, found.filter((a) => a.leaf !== null && tree.nodes[a.leaf].l === k).length]);
      const save = make("a", { class: "btn", download: "answers.csv", href: URL.createObjectURL(new Blob([csv], { type: "text/csv" })) }, "Save the answers");
      host.replaceChildren(make("p", {}, `${found.length.toLocaleString("en")} rows: ${counts.map(([c, n]) => `${c} ${n.toLocaleString("en")}`).join(", ")}${none.length ? `; ${none.length.toLocaleString("en")} without an answer, the first because ${none[0].why}` : ""}.`), ...said.slice(0, SHOWN).map((line) => make("p", { class: "banner gap" }, line)), save,
        make("table", { class: "plist" }, make("caption", { class: "vh" }, "The first answers"), make("thead", {}, make("tr", {}, make("th", { class: "num" }, "row"), make("th", {}, "answer"), make("th", { class: "num" }, "leaf"))),
          make("tbody", {}, ...found.slice(0, SHOWN).map((a, i) => make("tr", {}, make("td", { class: "num" }, String(i + 1)), make("td", {}, a.leaf === null ? a.why : tree.classes[tree.nodes[a.leaf].l]), make("td", { class: "num" }, a.leaf === null ? "" : String(a.leaf)))))));
    }).catch((error) => host.replaceChildren(make("p", { class: "msg error" }, error.message)));
  }

  document.getElementById("values").replaceChildren(...tree.columns.map((column, f) => make("div", { class: "typed" },
    make("label", { for: `v${f}` }, `${column.shown}${column.unit ? ` (${column.unit.trim()})` : ""}`), input(column, f), permission(column, f))));
  document.getElementById("typed").addEventListener("submit", (event) => { event.preventDefault(); answer(); });
  document.getElementById("file").addEventListener("change", (event) => { if (event.target.files[0]) file(event.target.files[0]); });
  const drop = document.getElementById("drop");
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("on"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("on"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("on"); if (event.dataTransfer.files[0]) file(event.dataTransfer.files[0]); });
  TreePicture.draw(document.getElementById("picture"), tree);
  Questionnaire.mount(document.getElementById("questions"), { tree, meta: { ...meta, heading: "h2" } });
  globalThis.octweb = { tree, answersOf, engine: TreeEngine };
})();
