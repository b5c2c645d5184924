// A classification tree in the browser: prediction as in the kernel, distances, and the smallest change of an
// answer over all leaves. Uses no DOM and no network; questionnaire, decision page and standalone file share it.
"use strict";

const TreeEngine = (() => {
  const BELOW = 1, BETWEEN = 2, AMONG = 3, IS_EMPTY = 5;
  const VALUE = -1, EMPTY = -2; // terms of a sum that are no category
  const MARKS = new Set(["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "?"]);
  // as in trainer/data/parsing/words.py
  const GAPS = new Set(`- -- --- – — . .. ... … * / x? n.a. n.a na n/a #n/a <na> nan nil none null unknown unkn. unk missing undefined void tbd
    n.d. n.d nd n/d k.a. k.a unbekannt inconnu desconocido #div/0! #value! #ref! #name? #num! #null! #wert! #bezug! (missing)
    (unknown) (null) (none) (blank) [null] <null> <none> nat <nat> \\n`.split(/\s+/).concat("not available", "not applicable", "not known", "not measured", "no data", "keine angabe", "no answer"));
  const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?$/;
  const SPELLED_NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$/;
  const UNSEEN = /[\u00ad\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff]/g;
  const DASHES = /[\u2010-\u2014\u2212]/g;
  const APOSTROPHES = /[\u2018\u2019\u02bc]/g;
  const LARGEST_EXACT = 2 ** 53;
  const UNKNOWN = -1;
  const FREE = { up: true, down: true, whole: false, codes: null };

  // ---- values

  // key shared by the spellings of one value, as in trainer/data/parsing/alike.py
  function spellingKey(word) {
    const plain = word.normalize("NFKC").replace(UNSEEN, "").replace(DASHES, "-").replace(APOSTROPHES, "'").toLowerCase().replaceAll("ß", "ss").replaceAll("ς", "σ");
    const text = plain.split(/\s+/).filter(Boolean).join(" ").normalize("NFKC").replaceAll("i\u0307", "i").replaceAll("ı", "i");
    return SPELLED_NUMBER.test(text) && !/^[+-]?0[0-9]/.test(text) ? String(Number(text) + 0) : text;
  }

  // code of the only category with another spelling of the word, else undefined
  const spelled = new WeakMap(); // by column
  function spellingOf(column, word) {
    if (!spelled.has(column)) {
      const codes = new Map();
      for (const [code, name] of (column.ranks ?? column.categories).entries()) codes.set(spellingKey(name), codes.has(spellingKey(name)) ? undefined : code);
      const unique = new Map([...codes].filter(([, code]) => code !== undefined));
      const truths = new Map(unique.has("true") || unique.has("false") ? [["1", "true"], ["0", "false"]] : [["true", "1"], ["false", "0"]]);
      spelled.set(column, { unique, truths });
    }
    const { unique, truths } = spelled.get(column), key = spellingKey(word), code = unique.get(key) ?? unique.get(truths.get(key));
    return code === column.missing ? undefined : code;
  }

  // parse a text of a column to a number or code; NaN if missing, null with a reason if invalid
  function read(column, text) {
    const word = String(text ?? "").trim();
    if (column.kind === "categorical") {
      const code = column.categories.indexOf(word);
      if (code >= 0) return { value: code };
      if (MARKS.has(word)) return { value: column.missing ?? NaN };
      const alike = column.other === undefined ? spellingOf(column, word) : undefined;
      if (alike !== undefined) return { value: alike, note: `'${word}' is read as '${column.categories[alike]}' in '${column.name}'.` };
      if (column.refuses) return { value: null, why: `'${word}' is not a known category of '${column.name}', and the model refuses such values` };
      return { value: UNKNOWN, note: `'${word}' is not a known category of '${column.name}'; the row answers no there.` };
    }
    if (column.ranks) return rank(column, word);
    if (isGap(word)) return { value: NaN };
    const truth = { true: 1, false: 0 }[/^(true|True|TRUE|false|False|FALSE)$/.test(word) ? word.toLowerCase() : ""];
    const value = truth ?? (NUMBER.test(word) ? Number(word) + 0 : null);
    if (value === null || !Number.isFinite(value)) return { value: null, why: `'${word}' is not a finite number` };
    if (/^[+-]?[0-9]{16,}(\.0*)?$/.test(word) && Math.abs(value) >= LARGEST_EXACT)
      return { value: null, why: `'${word}' is a whole number beyond 2^53, which would be rounded` };
    if (column.kind === "binary" && value !== 0 && value !== 1)
      return { value, note: `'${word}' is neither 0 nor 1 in '${column.name}', as in the training rows; it is compared as a number.` };
    return outside(column, value) ? { value, note: `A value of '${column.name}' lies outside the training range, ${column.range.map((end) => write(column, end)).join(" to ")}.` } : { value: value === 0 ? 0 : value };
  }

  // return whether a word means an empty cell in a column of numbers
  function isGap(word) { return MARKS.has(word) || GAPS.has(word.toLowerCase()); }

  // parse a word of a column of ranks, which become 1, 2, 3
  function rank(column, word) {
    const place = column.ranks.indexOf(word);
    if (place < 0 && isGap(word)) return { value: NaN };
    const code = place < 0 ? spellingOf(column, word) : place;
    return code === undefined ? { value: null, why: `'${word}' is not among the ranks ${column.ranks.join(" < ")}` } : { value: code + 1 };
  }

  // return whether a number is outside the training range and is no code; false if the range is unknown
  function outside(column, value) {
    return column.range !== undefined && (value < column.range[0] || value > column.range[1]) && !column.codes?.includes(value);
  }

  // format a value
  function write(column, value) {
    if (Number.isNaN(value)) return "missing";
    if (column.kind === "categorical") return column.categories[value] ?? "unknown";
    return column.ranks?.[value - 1] ?? String(value).replace("-", "−");
  }

  // ---- prediction, with the arithmetic of the kernel

  function sum(test, row) {
    let total = 0;
    for (const [h, [, , a]] of test.s.entries()) total += a * term(test, h, row);
    return total;
  }

  // value of a term of a sum; NaN if an empty cell decides
  function term(test, h, row) {
    const [f, level] = test.s[h];
    if (level === EMPTY) return Number(Number.isNaN(row[f]));
    if (level >= 0) return Number(row[f] === level);
    return Number.isNaN(row[f]) ? test.fill?.[h] ?? NaN : row[f];
  }

  // columns whose empty cell decides the test; such rows go left if test.e is 1
  function emptyIn(test, row) {
    if (test.e === undefined) return [];
    const read = test.s ? test.s.filter(([, level]) => level === VALUE).map(([f]) => f) : [test.f];
    return [...new Set(read)].filter((f) => Number.isNaN(row[f]));
  }

  // "age was empty; empty cells go to no here", or "" if no empty cell decides
  function emptyText(tree, test, row) {
    const names = emptyIn(test, row).map((f) => tree.columns[f].shown);
    if (!names.length) return "";
    return `${names.join(" and ")} ${names.length > 1 ? "were" : "was"} empty; empty cells go to ${test.e ? "yes" : "no"} here`;
  }

  // format a sum with the fewest digits, at least three, that keep its comparison with the threshold
  function sumText(test, row) {
    const total = sum(test, row), side = (x) => [x < test.h, x === test.h].join();
    for (let digits = 3; digits < 17; digits++) {
      const shown = Number(total.toPrecision(digits));
      if (!Number.isFinite(total) || side(shown) === side(total)) return String(shown).replace("-", "−");
    }
    return String(total).replace("-", "−");
  }

  function yes(test, row) {
    if (emptyIn(test, row).length) return test.e === 1;
    if (test.k === IS_EMPTY) return false;
    if (test.k === BELOW) return row[test.f] <= test.h;
    if (test.k === BETWEEN) return row[test.f] > (test.lo ?? -Infinity) && row[test.f] <= (test.h ?? Infinity);
    if (test.k === AMONG) return test.m.includes(row[test.f]);
    return sum(test, row) <= test.h;
  }

  function path(tree, row) {
    const way = [0];
    for (let v = tree.nodes[0]; v.t; v = tree.nodes[way[way.length - 1]]) way.push(yes(v.t, row) ? v.y : v.n);
    return way;
  }

  const leaf = (tree, row) => path(tree, row).pop();

  const columnsOf = (test) => (test.s ? [...new Set(test.s.map(([f]) => f))] : [test.f]);

  // ---- exact steps of a column

  // a finite double as whole / 2^power
  function exact(x) {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setFloat64(0, x);
    const high = bits.getBigUint64(0), exponent = Number((high >> 52n) & 2047n), rest = high & ((1n << 52n) - 1n);
    const whole = exponent ? rest | (1n << 52n) : rest, power = 1075 - (exponent || 1);
    return [high >> 63n ? -whole : whole, power];
  }

  const floorDivide = (a, b) => (a / b) - BigInt(a % b !== 0n && (a < 0n) !== (b < 0n));
  const stepped = (k, decimals) => Number(`${k}e-${decimals}`);

  function floorSteps(x, decimals) {
    const [whole, power] = exact(x), tens = 10n ** BigInt(decimals);
    return power >= 0 ? floorDivide(whole * tens, 1n << BigInt(power)) : (whole << BigInt(-power)) * tens;
  }

  // the largest value with these decimals that is at most `bound`
  function stepAtMost(bound, decimals) {
    if (decimals === null) return bound;
    let k = floorSteps(bound, decimals);
    while (stepped(k, decimals) > bound) k -= 1n;
    while (stepped(k + 1n, decimals) <= bound && stepped(k + 1n, decimals) > stepped(k, decimals)) k += 1n;
    return stepped(k, decimals);
  }

  function nextUp(x) {
    if (x === 0) return Number.MIN_VALUE;
    const bits = new DataView(new ArrayBuffer(8));
    bits.setFloat64(0, x);
    bits.setBigInt64(0, bits.getBigInt64(0) + (x > 0 ? 1n : -1n));
    return bits.getFloat64(0);
  }

  // the smallest value with these decimals that is above `bound`
  function stepAbove(bound, decimals) {
    if (decimals === null) return nextUp(bound);
    let k = floorSteps(bound, decimals) + 1n;
    if (stepped(k, decimals) <= bound) k += 1n;
    return stepped(k, decimals) > bound ? stepped(k, decimals) : nextUp(bound);
  }

  // ---- regions of leaves

  function span(low, high, decimals) {
    return {
      low, high,
      first: Number.isFinite(low) ? stepAbove(low, decimals) : -Infinity,
      last: Number.isFinite(high) ? stepAtMost(high, decimals) : Infinity,
    };
  }

  const decimalsFor = (column, permission) => (permission.whole || column.kind === "binary" ? 0 : column.decimals);
  const allEnds = (column) => (column.kind === "binary" ? [[-1, 1]] : [[-Infinity, Infinity]]);

  function ends(test, left) {
    if (test.k === IS_EMPTY) return left ? [] : [[-Infinity, Infinity]];
    const low = test.k === BETWEEN ? test.lo ?? -Infinity : -Infinity, high = test.h ?? Infinity;
    if (left) return low < high ? [[low, high]] : [];
    if (low >= high) return [[-Infinity, Infinity]];
    return [[-Infinity, low], [high, Infinity]].filter(([a, b]) => a < b);
  }

  const both = (first, second) =>
    first.flatMap(([a, b]) => second.map(([c, d]) => [Math.max(a, c), Math.min(b, d)])).filter(([a, b]) => a < b);

  function regions(tree, permissions) {
    const list = [], waiting = [[0, []]];
    while (waiting.length) {
      const [at, way] = waiting.pop(), v = tree.nodes[at];
      if (v.t) waiting.push([v.n, [...way, [v.t, false]]], [v.y, [...way, [v.t, true]]]);
      else {
        const region = regionOf(tree, at, way, permissions);
        if (region) list.push(region);
      }
    }
    return list.sort((a, b) => a.leaf - b.leaf);
  }

  function regionOf(tree, at, way, permissions) {
    const pieces = new Map(), codes = new Map(), sums = [], empty = new Map();
    for (const [test, left] of way) {
      const column = tree.columns[test.f];
      if (test.s) sums.push({ test, left });
      else if (column.kind === "categorical") {
        const allowed = codes.get(test.f) ?? [UNKNOWN, ...column.categories.keys()];
        codes.set(test.f, allowed.filter((code) => yes(test, { [test.f]: code }) === left));
      } else {
        pieces.set(test.f, both(pieces.get(test.f) ?? allEnds(column), ends(test, left)));
        empty.set(test.f, (empty.get(test.f) ?? true) && (test.e === 1) === left);
      }
    }
    const spans = new Map();
    for (const [f, list] of pieces) {
      if (!list.length && !empty.get(f)) return null;
      const decimals = decimalsFor(tree.columns[f], permissions[f]);
      spans.set(f, list.map(([low, high]) => span(low, high, decimals)));
    }
    for (const list of codes.values()) if (!list.length) return null;
    return { leaf: at, label: tree.nodes[at].l, spans, codes, sums, empty };
  }

  function holds(region, f, value) {
    if (region.codes.has(f)) return region.codes.get(f).includes(Number.isNaN(value) ? UNKNOWN : value); // both answer no
    if (Number.isNaN(value)) return region.empty.get(f) ?? true;
    return !region.spans.has(f) || region.spans.get(f).some((s) => s.low < value && value <= s.high);
  }

  // ---- the smallest change

  const never = (permission) => !(permission.up || permission.down);

  function reachable(tree, region, f, permission) {
    if (never(permission)) return [];
    const column = tree.columns[f], allowed = region.codes.get(f);
    const codes = permission.codes ?? [...column.categories.keys()].filter((c) => column.categories[c] !== "(missing)");
    return codes.filter((c) => !allowed || allowed.includes(c));
  }

  function nearest(spans, value, permission) {
    let best = null;
    for (const s of spans) {
      let found = null;
      if (value <= s.low) found = permission.up && s.first <= s.high ? s.first : null;
      else found = permission.down && s.last > s.low ? s.last : null;
      if (found !== null && (best === null || Math.abs(found - value) < Math.abs(best - value))) best = found;
    }
    return best;
  }

  function flipOf(tree, row, changed, at) {
    const columns = [...row.keys()].filter((f) => changed[f] !== row[f] && !(Number.isNaN(changed[f]) && Number.isNaN(row[f])));
    let distance = 0;
    for (const f of columns)
      distance += tree.columns[f].kind === "categorical" ? 1 : Math.abs(changed[f] - row[f]) / (tree.columns[f].scale ?? 1);
    return { row: changed, leaf: at, columns, distance, proved: true };
  }

  const checked = (tree, row, changed, region) =>
    (leaf(tree, changed) === region.leaf ? [flipOf(tree, row, changed, region.leaf)] : []);

  const usedBy = (region) =>
    [...new Set([...region.spans.keys(), ...region.codes.keys(), ...region.sums.flatMap((s) => columnsOf(s.test))])];

  function withValue(row, f, value) {
    const changed = [...row];
    changed[f] = value;
    return changed;
  }

  function plain(tree, row, region, forced, permissions) {
    const changed = [...row];
    for (const f of forced) {
      const value = region.spans.has(f)
        ? nearest(region.spans.get(f), row[f], permissions[f])
        : reachable(tree, region, f, permissions[f])[0] ?? null;
      if (value === null) return [];
      changed[f] = value;
    }
    return checked(tree, row, changed, region);
  }

  // leaves with weighted sums: for each column, the cheapest row in which only this column changes
  function single(tree, row, region, forced, permissions) {
    if (forced.length > 1) return [];
    const flips = [];
    for (const f of forced.length ? forced : usedBy(region).sort((a, b) => a - b)) {
      if (never(permissions[f]) || Number.isNaN(row[f])) continue;
      const values = tree.columns[f].kind === "categorical"
        ? reachable(tree, region, f, permissions[f]) : numbers(tree, row, region, f, permissions[f]);
      const found = values.filter((v) => v !== row[f]).flatMap((v) => checked(tree, row, withValue(row, f, v), region));
      flips.push(...found.sort(order).slice(0, 1));
    }
    return flips;
  }

  function numbers(tree, row, region, f, permission) {
    const decimals = decimalsFor(tree.columns[f], permission), own = row[f];
    let low = -Infinity, high = Infinity;
    for (const { test, left } of region.sums) {
      let a = 0, rest = 0;
      for (const [h, [g, level, c]] of test.s.entries()) {
        if (g === f && level === VALUE) a += c;
        else rest += c * term(test, h, row);
      }
      if (a === 0 || emptyIn(test, row).length) continue;
      const bound = (test.h - rest) / a;
      if ((a > 0) === left) high = Math.min(high, bound);
      else low = Math.max(low, bound);
    }
    const values = [], spans = region.spans.get(f) ?? allEnds(tree.columns[f]).map(([x, y]) => span(x, y, decimals));
    const close = 1e-9 * Math.max(1, Math.abs(own));
    for (const s of spans) {
      const bottom = Math.max(low, s.low), top = Math.min(high, s.high);
      if (permission.up && bottom >= own - close && Number.isFinite(bottom))
        values.push(...nudged(row, region, f, stepAbove(Math.max(bottom, own), decimals), s, decimals, true));
      if (permission.down && top <= own + close && Number.isFinite(top))
        values.push(...nudged(row, region, f, stepAtMost(Math.min(top, own), decimals), s, decimals, false));
    }
    return values;
  }

  // first value from `start` away from the row's that reaches the leaf, since the bound of a sum is rounded
  function nudged(row, region, f, start, s, decimals, up) {
    const step = decimals !== null ? 10 ** -decimals : nextUp(Math.abs(start || 1)) - Math.abs(start || 1);
    const sign = up ? 1 : -1, offset = -2 * sign * step;
    const on = (x) => (decimals === null ? x : stepped(BigInt(Math.round(x * 10 ** decimals)), decimals));
    const tries = [0, 1, 2, 3, 4].map((k) => on(start + offset + sign * k * step));
    for (let k = 2; k < (decimals === null ? 64 : 8); k += 1) tries.push(on(start + sign * step * 2 ** k));
    for (const value of tries) {
      const inside = value !== row[f] && (value > row[f]) === up && s.low < value && value <= s.high;
      if (inside && region.sums.every((t) => yes(t.test, withValue(row, f, value)) === t.left)) return [value];
    }
    return [];
  }

  const order = (a, b) => a.columns.length - b.columns.length || a.distance - b.distance || a.leaf - b.leaf;

  // {flip, alternatives, reason}: the smallest change to the class `wanted`, or to any other answer. Columns of `fixed` stay: those
  // whose value nobody knows. Leaves that depend on a column of `open` are left out: it may have any value. Empty cells stay empty. `proved` is false where a leaf with sums may need several columns, which is not searched here.
  function flip(tree, row, { permissions, wanted = null, fixed = new Set(), open: notAsked = new Set() } = {}) {
    const allowed = tree.columns.map((_, f) => (fixed.has(f) ? { ...FREE, up: false, down: false } : permissions?.[f] ?? FREE));
    const own = tree.nodes[leaf(tree, row)].l;
    if (wanted === own) return { flip: null, alternatives: [], reason: `The answer is ${tree.classes[own]} already.` };
    const targets = regions(tree, allowed).filter((r) => (wanted === null ? r.label !== own : r.label === wanted));
    const name = wanted === null ? "another class" : tree.classes[wanted];
    if (!targets.length) return { flip: null, alternatives: [], reason: `No leaf of the tree says ${name}.` };
    const flips = [];
    let left = 0;
    for (const region of targets) {
      const forced = [...region.spans.keys(), ...region.codes.keys()].filter((f) => !holds(region, f, row[f]));
      if (forced.some((f) => never(allowed[f]) || Number.isNaN(row[f])) || usedBy(region).some((f) => notAsked.has(f))) continue;
      if (region.sums.some((s) => columnsOf(s.test).some((f) => fixed.has(f)))) continue;
      if (!region.sums.length) flips.push(...plain(tree, row, region, forced, allowed));
      else {
        const found = single(tree, row, region, forced, allowed);
        flips.push(...found);
        if (!found.length) left += 1;
      }
    }
    const chosen = [];
    for (const f of flips.sort(order))
      if (!chosen.some((better) => better.columns.every((c) => f.columns.includes(c)))) chosen.push(f);
    const open = left > 0 && !(chosen.length && chosen[0].columns.length === 1);
    for (const f of chosen) f.proved = !open;
    if (chosen.length) return { flip: chosen[0], alternatives: chosen.slice(1, 4), reason: null, compared: targets.length };
    const what = wanted === null ? "another answer" : `the answer ${name}`;
    const reason = open
      ? "No change of one column leads to it. Changes of several columns of a weighted sum are not searched here."
      : fixed.size
        ? `No permitted change of what was asked leads to ${what} for certain: other leaves depend on columns that were not asked.`
        : `No permitted change leads to ${what}: all ${targets.length} leaves that give it were compared.`;
    return { flip: null, alternatives: [], reason, compared: targets.length };
  }

  // ---- files

  // rows of cells from CSV text: quotes, doubled quotes, line breaks in quotes; the delimiter is the most frequent of the first line
  function parseCsv(text) {
    const head = text.slice(0, text.search(/[\r\n]|$/)), count = (d) => head.split(d).length;
    const delimiter = [",", ";", "\t", "|"].reduce((best, d) => (count(d) > count(best) ? d : best));
    const rows = [];
    let row = [], cell = "", quoted = false, at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
    for (; at < text.length; at += 1) {
      const c = text[at];
      if (quoted) {
        if (c !== '"') cell += c;
        else if (text[at + 1] === '"') { cell += '"'; at += 1; } else quoted = false;
      } else if (c === '"' && cell === "") quoted = true;
      else if (c === delimiter) { row.push(cell); cell = ""; }
      else if (c === "\n" || c === "\r") {
        if (c === "\r" && text[at + 1] === "\n") at += 1;
        rows.push([...row, cell]);
        row = []; cell = "";
      } else cell += c;
    }
    if (cell !== "" || row.length) rows.push([...row, cell]);
    return rows.filter((r) => r.length > 1 || r[0].trim() !== "");
  }

  // predict a CSV: for each row its leaf, or the reason why not; throws an Error if a needed column is missing
  function predictCsv(tree, text) {
    const [head, ...rows] = parseCsv(text);
    const names = (head ?? []).map((name) => name.trim()), places = tree.columns.map((c) => names.indexOf(c.name));
    const absent = tree.columns.filter((_, f) => places[f] < 0).map((c) => c.name);
    if (absent.length) throw new Error(`The file lacks ${absent.length} of the ${tree.columns.length} columns that the tree needs: ${absent.join(", ")}.`);
    return rows.map((cells) => predictCells(tree, tree.columns.map((_, f) => cells[places[f]])));
  }

  function predictCells(tree, cells) {
    const row = [], notes = [];
    for (const [f, column] of tree.columns.entries()) {
      const { value, why, note } = read(column, cells[f]);
      if (value === null) return { leaf: null, why: `${column.name}: ${why}`, notes };
      if (Number.isNaN(value) && !column.empty) return { leaf: null, why: `${column.name} has no value, and the tree needs one`, notes };
      if (note) notes.push(note);
      row.push(value);
    }
    return { leaf: leaf(tree, row), row, notes };
  }

  return { read, write, yes, sum, sumText, emptyText, path, leaf, columnsOf, flip, regions, parseCsv, predictCsv, predictCells, stepAbove, stepAtMost, FREE };
})();

if (typeof module !== "undefined") module.exports = TreeEngine;
