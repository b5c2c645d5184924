"use strict";

// A number as a person types it, by the rule of octweb/registry/page/typed_numbers.py. What has two meanings, or none, is NaN. Both
// sides are tested with the examples of tests/octweb/registry/typed_numbers.json.
const NUMBER_FORMS = [[".", ","], [",", "."], [",", " "], [",", "'"], [".", " "], [".", "'"]].map(([decimal, thousands]) => ({ decimal, thousands }));
const PAGE_FORM = NUMBER_FORMS[0];
const COMMA_FORM = { decimal: ",", thousands: "" };

// plain spaces, minus signs and apostrophes, without marks that nobody sees
function foldedNumber(text) {
  return text
    .replace(/[\u00a0\u2007\u2009\u202f]/g, " ")
    .replace(/[\u200b-\u200f\u2060\ufeff]/g, "")
    .replace(/\u2212/g, "-")
    .replace(/[\u2019\u02bc]/g, "'")
    .trim();
}

// the number with a decimal point, or null where the word is not written in this form
function plainNumber(word, form) {
  const found = /^([+-]?)\s*([+-]?)([0-9.,' ]*[0-9](?:[eE][+-]?[0-9]{1,5})?)$/.exec(foldedNumber(word));
  if (!found || (found[1] && found[2])) return null;
  const whole = form.thousands ? `[1-9][0-9]{0,2}(?:[${form.thousands}][0-9]{3})+|0|[1-9][0-9]*` : "0|[1-9][0-9]*";
  const point = `[${form.decimal}]`;
  const body = new RegExp(`^(?:(?:${whole})(?:${point}[0-9]+)?|${point}[0-9]+)(?:[eE][+-]?[0-9]{1,5})?$`);
  if (!body.test(found[3])) return null;
  const core = form.thousands ? found[3].replaceAll(form.thousands, "") : found[3];
  return (found[1] || found[2]) + core.replace(form.decimal, ".");
}

// `unit` may stand behind the number; `decimalComma` says that the file of the training had such numbers
function typedNumber(text, unit = "", decimalComma = false) {
  const name = unit.trim();
  let word = text.trim();
  if (name && word.endsWith(name)) word = word.slice(0, word.length - name.length).trim();
  const [page, comma] = [plainNumber(word, PAGE_FORM), plainNumber(word, COMMA_FORM)];
  if (decimalComma && page !== null && comma !== null && page !== comma) return NaN; // "2,610": two thousand, or less than three
  const plain = NUMBER_FORMS.map((form) => plainNumber(word, form)).find((found) => found !== null);
  const value = Number(plain ?? NaN);
  return Number.isFinite(value) ? value : NaN;
}
