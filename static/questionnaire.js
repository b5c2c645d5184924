// The tree as questions, one at a time: only what this way needs, with back, "I don't know" and the change of the answer at the end.
// What is answered stays in this tab (memory and sessionStorage): no address and no server learns it.
"use strict";

const Questionnaire = (() => {
  const UNKNOWN = "unknown";
  const FEW = 7; // categories up to which each has a button of its own

  // ---- which question is next

  // whether a question has no way for empty cells of a column that training rows have taken (test.w)
  const noWay = (test, f) => !test.w?.includes(f);
  // whether both ways of a question are followed: nobody knows the value, and no training row showed where an empty cell goes
  const followsBoth = (test, answers, f) => answers.get(f) === UNKNOWN && noWay(test, f);

  // the places where the answers so far end: nodes that need a column, and leaves, each with its share; and the columns followed both ways
  function frontier(tree, answers) {
    const row = tree.columns.map((_, f) => (typeof answers.get(f) === "number" ? answers.get(f) : NaN));
    const ends = [], both = new Set(), waiting = [[0, 1]];
    while (waiting.length) {
      const [at, weight] = waiting.pop(), v = tree.nodes[at];
      const columns = v.t ? TreeEngine.columnsOf(v.t) : [];
      const unknown = columns.filter((f) => followsBoth(v.t, answers, f)), open = unknown.length > 0;
      const needed = open ? [] : columns.filter((f) => !answers.has(f));
      for (const f of unknown) both.add(f);
      if (!v.t || needed.length) ends.push({ at, weight, needed });
      else if (open) {
        const share = v.r ? tree.nodes[v.y].r / v.r : 0.5;
        waiting.push([v.n, weight * (1 - share)], [v.y, weight * share]);
      } else waiting.push([TreeEngine.yes(v.t, row) ? v.y : v.n, weight]);
    }
    return { row, places: ends, both };
  }

  // the column that is asked next and the node that needs it; null where the answer is there
  function next(tree, answers) {
    const open = frontier(tree, answers).places.filter((p) => p.needed.length).sort((a, b) => b.weight - a.weight || a.at - b.at);
    return open.length ? { column: open[0].needed[0], node: open[0].at } : null;
  }

  // the most questions that can still come
  function most(tree, answers) {
    const known = new Set(answers.keys());
    const longest = (at, own) => {
      const v = tree.nodes[at];
      if (!v.t) return 0;
      const fresh = TreeEngine.columnsOf(v.t).filter((f) => !own.has(f)), more = new Set([...own, ...fresh]);
      return fresh.length + Math.max(longest(v.y, more), longest(v.n, more));
    };
    const { places } = frontier(tree, answers);
    const total = places.reduce((sum, p) => sum + longest(p.at, known), 0);
    return Math.min(total, tree.columns.length - known.size);
  }

  const labelsBelow = (tree, at, found = new Set()) => {
    const v = tree.nodes[at];
    if (!v.t) found.add(v.l);
    else { labelsBelow(tree, v.y, found); labelsBelow(tree, v.n, found); }
    return found;
  };

  // ---- words

  const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u202f%`;
  const number = (x) => String(Number(x.toPrecision(4))).replace("-", "−");
  const either = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names[names.length - 1]}`);

  function reason(tree, at) {
    const v = tree.nodes[at];
    const answers = (below) => either([...labelsBelow(tree, below)].sort((a, b) => a - b).map((k) => `“${tree.classes[k]}”`));
    const share = v.r ? ` The first holds for ${percent(tree.nodes[v.y].r / v.r)} of the ${v.r.toLocaleString("en")} training rows that get here.` : "";
    return `Why we ask: if ${v.q}, the answer is ${answers(v.y)}. If not, it is ${answers(v.n)}.${share}`;
  }

  // the changes of a flip: "income 3200 € instead of 3000 € (200 € more) and town north instead of south"
  function changes(tree, row, found) {
    return found.columns.map((f) => {
      const c = tree.columns[f], by = found.row[f] - row[f];
      const words = `${c.shown} ${TreeEngine.write(c, found.row[f])}${c.unit} instead of ${TreeEngine.write(c, row[f])}${c.unit}`;
      return c.kind === "numeric" && !c.ranks ? `${words} (${String(Number(Math.abs(by).toPrecision(12)))}${c.unit} ${by > 0 ? "more" : "less"})` : words;
    }).join(" and ");
  }

  // the columns on the path of a flip that the row's own path does not ask, in words
  function beyondPath(tree, row, found) {
    const columns = (of) => TreeEngine.path(tree, of).flatMap((v) => (tree.nodes[v].t ? TreeEngine.columnsOf(tree.nodes[v].t) : []));
    const asked = new Set(columns(row)), more = [...new Set(columns(found.row))].filter((f) => !asked.has(f)).sort((a, b) => a - b);
    if (!more.length) return "";
    const names = more.map((f) => `${tree.columns[f].shown} (${TreeEngine.write(tree.columns[f], row[f])})`).join(" and ");
    return ` The change depends on ${names}, which the path of this row does not ask. A questionnaire ends before that question and may show a larger change.`;
  }

  // columns without an answer stay as they are in a flip; with their values known another change may be smaller
  function unasked(tree, fixed) {
    if (!fixed.size) return "";
    const names = [...fixed].sort((a, b) => a - b).map((f) => tree.columns[f].shown);
    return ` Not answered here: ${names.join(", ")}. Where these are known, too, a smaller change may exist.`;
  }

  // how changes are compared, and what counts as a change of size 1 in the columns that they touch
  function measure(tree, flips) {
    const touched = [...new Set(flips.flatMap((f) => f.columns))].sort((a, b) => a - b).map((f) => tree.columns[f]);
    const one = touched.map((c) => (c.kind === "categorical" ? `another category of ${c.shown}` : `${number(c.scale ?? 1)}${c.unit} of ${c.shown}`));
    return `Changes are compared by how many values they touch, then by their sizes, added up. Size 1 is ${either(one)}.`;
  }

  // ---- the page

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value === true) node.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
    }
    node.append(...children.filter((c) => c !== null && c !== undefined));
    return node;
  }

  function mount(host, { tree, meta }) {
    const key = `octweb:questionnaire:${meta.key}`;
    let answers = restored(), focus = false;

    function restored() {
      try {
        const kept = new Map(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
        return [...kept.keys()].every((f) => f < tree.columns.length) ? kept : new Map();
      } catch { return new Map(); }
    }

    function keep() {
      try { sessionStorage.setItem(key, JSON.stringify([...answers])); } catch { /* a browser without storage: memory will do */ }
    }

    function answered(f, value) {
      answers.set(f, value);
      keep();
      focus = true;
      show();
    }

    // take the answer to a question back, and all that came after it
    function backTo(f) {
      const order = [...answers.keys()];
      for (const later of order.slice(order.indexOf(f))) answers.delete(later);
      keep();
      focus = true;
      show();
    }

    function show() {
      const ask = next(tree, answers);
      const page = ask ? question(ask) : result();
      host.replaceChildren(...page);
      const head = host.querySelector("h1, h2.q1");
      if (focus) head.focus();
      const status = host.parentElement.querySelector("[data-questionnaire-status]");
      if (status) status.textContent = focus ? host.querySelector("[data-said]")?.textContent ?? "" : "";
    }

    const heading = (text) => make(meta.heading ?? "h1", { class: "q1", tabindex: "-1" }, text);

    function question({ column: f, node }) {
      const column = tree.columns[f], number = answers.size + 1, all = answers.size + most(tree, answers);
      const trouble = make("p", { class: "msg error", role: "alert", hidden: true, id: "q-trouble" });
      const form = make("form", { class: "b", novalidate: true, onsubmit: (event) => submit(event, f, form, trouble) },
        make("p", { class: "note2", "data-said": true }, `Question ${number} of at most ${all}`),
        make("progress", { max: String(all), value: String(number - 1), "aria-label": "Progress" }),
        heading(`What is ${column.shown}?`), field(column), trouble,
        make("p", { class: "note2", id: "q-why" }, reason(tree, node)),
        make("div", { class: "steps" },
          make("button", { class: "btn primary full" }, all === number ? "See the answer" : "Next"),
          make("button", { class: "btn full", type: "button", onclick: () => answered(f, UNKNOWN) }, "I don’t know"),
          answers.size ? make("button", { class: "btn quiet full", type: "button", onclick: () => backTo([...answers.keys()].pop()) }, "Back") : null),
        make("p", { class: "note2" }, `${!noWay(tree.nodes[node].t, f) ? "“I don’t know” goes the way that rows with this value missing go." : "“I don’t know” follows both ways, which may take more questions."} Your answers stay in this window.`));
      return [form, given()];
    }

    function field(column) {
      const unit = column.unit ? ` in${column.unit}` : "";
      const choices = column.kind === "binary" ? [["0", "0"], ["1", "1"]] : column.ranks ? column.ranks.map((word, place) => [place + 1, word]) : column.kind === "categorical"
        ? [...column.categories.entries()].filter(([code]) => code !== column.missing).concat(column.other === undefined && !column.refuses ? [[-1, "another one"]] : []) : null;
      if (!choices)
        return make("label", {}, `${column.shown}${unit}`, make("input", { class: "big", name: "value", inputmode: "decimal", autocomplete: "off", "aria-describedby": "q-why" }));
      if (choices.length > FEW)
        return make("label", {}, column.shown, make("select", { class: "big", name: "value", "aria-describedby": "q-why" },
          make("option", { value: "" }, "choose…"), ...choices.map(([code, c]) => make("option", { value: String(code) }, c || "(empty)"))));
      return make("fieldset", { "aria-describedby": "q-why" }, make("legend", {}, column.shown), ...choices.map(([code, c]) =>
        make("label", { class: "choice" }, make("input", { type: "radio", name: "value", value: String(code) }), ` ${c || "(empty)"}`)));
    }

    function submit(event, f, form, trouble) {
      event.preventDefault();
      const column = tree.columns[f], value = new FormData(form).get("value");
      let found;
      if (value === null || value.trim() === "") found = { value: null, why: "Please answer, or choose “I don’t know”." };
      else if (column.kind === "categorical" || column.ranks) found = { value: Number(value) };
      // a comma is taken for a decimal point only where it cannot part thousands
      else found = TreeEngine.read(column, /^[+-]?\d+,(\d{1,2}|\d{4,})$/.test(value.trim()) ? value.replace(",", ".") : value);
      if (found.value === null || Number.isNaN(found.value)) {
        trouble.textContent = found.why ?? "Please write a number, or choose “I don’t know”.";
        trouble.hidden = false;
        const input = form.querySelector("[name=value]");
        input.setAttribute("aria-invalid", "true");
        input.setAttribute("aria-describedby", "q-trouble q-why");
        input.focus();
        return;
      }
      answered(f, found.value);
    }

    function given() {
      if (!answers.size) return make("span", {});
      const lines = [...answers].map(([f, value]) => make("div", { class: "ans2" }, make("span", {}, tree.columns[f].shown),
        make("span", {}, make("b", {}, value === UNKNOWN ? "not known" : `${TreeEngine.write(tree.columns[f], value)}${tree.columns[f].unit}`), " ",
          make("button", { type: "button", class: "link", "aria-label": `Change ${tree.columns[f].shown}`, onclick: () => backTo(f) }, "change"))));
      return make("section", { class: "given", "aria-label": "Answered" }, make("p", { class: "note2" }, "Answered"), ...lines);
    }

    function result() {
      const { row, places, both } = frontier(tree, answers), shares = tree.classes.map(() => 0);
      for (const p of places) shares[tree.nodes[p.at].l] += p.weight;
      const labels = shares.map((share, k) => [share, k]).filter(([, k]) => places.some((p) => tree.nodes[p.at].l === k)).sort((a, b) => b[0] - a[0]);
      const unknown = [...both].map((f) => tree.columns[f].shown);
      const parts = places.length === 1 ? certain(row, places[0].at, both) : open(labels, unknown);
      const page = make("div", { class: "b" }, make("p", { class: "note2" }, "Answer"), ...parts, make("div", { class: "steps" },
        make("button", { type: "button", class: "btn primary full", onclick: () => { answers = new Map(); keep(); focus = true; show(); } }, "Start again"),
        answers.size ? make("button", { type: "button", class: "btn quiet full", onclick: () => backTo([...answers.keys()].pop()) }, "Back") : null));
      if (meta.foot) page.append(make("p", { class: "note2" }, meta.foot));
      return [page, given()];
    }

    function swatch(k) { return make("i", { class: `sw c${(k % 8) + 1}`, "aria-hidden": "true" }); }

    function certain(row, at, both) {
      const v = tree.nodes[at], head = heading("");
      head.append(swatch(v.l), tree.classes[v.l]);
      const how = v.u?.[1] ? `Right for ${percent(v.u[0] / v.u[1])} of ${v.u[1].toLocaleString("en")} unseen rows with these answers.`
        : v.c && v.r ? `Right for ${percent(v.c[v.l] / v.r)} of the ${v.r.toLocaleString("en")} training rows with these answers; on new rows it is right less often.` : null;
      return [head, make("p", { class: "vh", "data-said": true }, `The answer is ${tree.classes[v.l]}`), how ? make("p", {}, how) : null, steps(row), flip(row, at, both)].filter(Boolean);
    }

    function open(labels, unknown) {
      const one = labels.length === 1, head = heading(one ? tree.classes[labels[0][1]] : `It depends on ${either(unknown)}`);
      if (one) head.prepend(swatch(labels[0][1]));
      const rows = tree.nodes[0].r !== undefined;
      const words = one ? `The answer is the same whatever ${either(unknown)} is.`
        : rows ? "Both ways were followed. Share of each answer among the training rows that go these ways:" : "Both ways were followed. These answers are possible:";
      const list = make("ul", { class: "plain shares" }, ...labels.map(([share, k]) => make("li", {}, swatch(k), tree.classes[k], rows && !one ? make("b", {}, ` ${percent(share)}`) : null)));
      return [head, make("p", { "data-said": true }, words), list];
    }

    function steps(row) {
      const way = TreeEngine.path(tree, row), items = way.slice(0, -1).map((v, i) => {
        const node = tree.nodes[v], answer = way[i + 1] === node.y ? "yes" : "no";
        const value = node.t.s ? `sum ${TreeEngine.sumText(node.t, row)}` : TreeEngine.write(tree.columns[node.t.f], row[node.t.f]);
        return make("div", { class: "ans2" }, make("span", {}, `${node.q}?`), make("b", {}, TreeEngine.emptyText(tree, node.t, row) || `${answer}, ${value}`));
      });
      return items.length ? make("div", {}, ...items) : null;
    }

    function flip(row, at, both) {
      const fixed = new Set([...tree.columns.keys()].filter((f) => typeof answers.get(f) !== "number"));
      const open = new Set([...fixed].filter((f) => !answers.has(f) || both.has(f)));
      const found = TreeEngine.flip(tree, row, { fixed, open, permissions: meta.permissions });
      if (!found.flip) return make("p", { class: "banner" }, found.reason);
      const flips = [found.flip, ...found.alternatives], proof = found.flip.proved
        ? "Nothing smaller changes the answer if all else stays the same." : "A smaller change of several answers may exist.";
      const lines = flips.map((f, i) => make("li", {}, i ? "Or " : "", make("b", {}, `${i ? "it" : "It"} would be ${tree.classes[tree.nodes[f.leaf].l]}`), ` with ${changes(tree, row, f)}.`));
      return make("div", { class: "banner flip" }, make("ul", { class: "plain" }, ...lines),
        make("p", { class: "note2" }, `${proof}${unasked(tree, fixed)} ${measure(tree, flips)} This is about the tree, not about what a person can do.`));
    }

    show();
    return { answers: () => answers };
  }

  return { mount, next, most, frontier, make, percent, number, changes, measure, beyondPath, UNKNOWN };
})();

if (typeof document !== "undefined") {
  for (const host of document.querySelectorAll("[data-questionnaire]")) {
    Questionnaire.mount(host, JSON.parse(document.getElementById(host.dataset.questionnaire).textContent));
  }
}

if (typeof module !== "undefined") module.exports = Questionnaire;
