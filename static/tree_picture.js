// Draw a tree as a small inline picture: bands as wide as their rows, with the path of one row highlighted.
"use strict";

const TreePicture = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const LEVEL = 44, LEAF = 46, TOP = 14, LABELLED = 24, SIDE = 110; // leaves up to which questions are written into the picture
  const NARROW = 480; // pixels of a place in which leaves stand closer; the picture keeps its size there, and scrolls

  function element(name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  // x and level of each node, leaves side by side
  function layout(tree) {
    const at = [];
    let next = 0, depth = 0;
    (function place(v, level) {
      const node = tree.nodes[v];
      depth = Math.max(depth, level);
      if (!node.t) { at[v] = { x: next, level }; next += 1; return; }
      place(node.y, level + 1);
      place(node.n, level + 1);
      at[v] = { x: (at[node.y].x + at[node.n].x) / 2, level };
    })(0, 0);
    return { at, leaves: next, depth };
  }

  // drop further words of a shortened name first, but keep a number, which distinguishes it;
  // never cut a number: leave it out
  function short(text, most) {
    while (text.length > most && /^…[^_ \d]+[_ ]./.test(text)) text = text.replace(/^…[^_ \d]+[_ ]/, "…");
    return text.length > most ? `${text.slice(0, most - 1).replace(/(^| )([≤<>] )?−?\d[\d.,E+-]*$/, "")}…` : text;
  }

  // fit a question into the given letters; if too few, put its number below its name
  function lines(question, most) {
    const parts = /^(.+) ([≤<>] ?−?\d\S*)$/.exec(question);
    if (question.length <= most || !parts || parts[2].length > most) return [short(question, most)];
    return [short(parts[1], most), parts[2]];
  }

  function label(x, y, written) {
    const text = element("text", { x, y });
    written.forEach((line, i) => text.append(element("tspan", i ? { x, dy: 12 } : { x }, line)));
    return text;
  }
  const look = (k) => `c${(k % 8) + 1}`;

  // draw `tree` into `host`; `way` are the nodes on the path of the shown row
  function draw(host, tree, way = []) {
    const { at, leaves, depth } = layout(tree), on = new Set(way);
    const place = host.parentElement.clientWidth; // an empty place has no width of its own
    const narrow = leaves <= LABELLED && place > 0 && place < NARROW;
    const step = leaves > LABELLED ? Math.max(12, 900 / leaves) : narrow ? LEAF : LEAF * (leaves < 9 ? 2 : 1.5);
    const width = Math.max(narrow ? 180 : 320, leaves * step), height = TOP * 2 + depth * LEVEL + 12;
    const x = (v) => (at[v].x + 0.5) * (width / leaves), y = (v) => TOP + at[v].level * LEVEL;
    const all = tree.nodes[0].r || 0;
    const svg = element("svg", { viewBox: `0 0 ${width + (leaves <= LABELLED ? SIDE : 0)} ${height}`, role: "img", "aria-label": words(tree, way) });
    const marks = [], texts = [];
    tree.nodes.forEach((node, v) => {
      if (!node.t) {
        const leaf = element("rect", { class: `leaf ${look(node.l)}${on.has(v) ? " on" : ""}`, x: x(v) - 6, y: y(v) - 6, width: 12, height: 12, rx: 2 });
        leaf.append(element("title", {}, tree.classes[node.l]));
        marks.push(leaf);
        return;
      }
      for (const below of [node.y, node.n]) {
        const middle = (y(v) + y(below)) / 2, wide = all ? 1 + 9 * (tree.nodes[below].r / all) : 2;
        const d = `M${x(v)} ${y(v)}C${x(v)} ${middle} ${x(below)} ${middle} ${x(below)} ${y(below)}`;
        svg.append(element("path", { class: on.has(v) && on.has(below) ? "edge on" : "edge", d, "stroke-width": wide.toFixed(1) }));
      }
      marks.push(element("circle", { class: "node", cx: x(v), cy: y(v), r: 3 }));
      if (leaves <= LABELLED) {
        // to the right, up to the next node of the level; the title of the dot has the full question
        const beside = at.reduce((least, p, w) => (p.level === at[v].level && p.x > at[v].x ? Math.min(least, x(w)) : least), width + SIDE);
        const room = Math.floor((beside - x(v) - 20) / 6.6);
        if (room >= 6) texts.push(label(x(v) + 8, y(v) - 3, lines(node.b ?? node.q, Math.min(40, room))));
        marks[marks.length - 1].append(element("title", {}, `${node.q}?`));
      }
    });
    svg.append(...marks, ...texts);
    svg.style.maxWidth = `${Math.round(width * 1.2) + (narrow ? SIDE : 0)}px`;
    if (narrow) {
      svg.style.minWidth = `${width + SIDE}px`;
      host.tabIndex = 0;
    }
    host.replaceChildren(svg);
    if (!texts.length) host.title = "Questions are too many to write into the picture.";
  }

  function words(tree, way) {
    if (!way.length) return `A tree with ${tree.nodes.filter((v) => !v.t).length} leaves; the rules are given as text, too.`;
    const steps = way.slice(0, -1).map((v, i) => `${tree.nodes[v].q}? ${way[i + 1] === tree.nodes[v].y ? "yes" : "no"}`);
    return `The way of this row: ${[...steps, `so it is ${tree.classes[tree.nodes[way[way.length - 1]].l]}`].join("; ")}`;
  }

  // return the nodes from the root to a leaf
  function wayTo(tree, leaf) {
    const parent = [];
    tree.nodes.forEach((node, v) => { if (node.t) { parent[node.y] = v; parent[node.n] = v; } });
    const way = [leaf];
    while (parent[way[0]] !== undefined) way.unshift(parent[way[0]]);
    return way;
  }

  return { draw, wayTo };
})();

for (const host of document.querySelectorAll("[data-tree-picture]")) {
  const tree = JSON.parse(document.getElementById(host.dataset.treePicture).textContent);
  TreePicture.draw(host, tree, host.dataset.leaf ? TreePicture.wayTo(tree, Number(host.dataset.leaf)) : []);
}
