"use strict";

// Parse typed numbers by the rules of octweb/registry/page/typed_numbers.py. Ambiguous and invalid ones are NaN. Both
// sides are tested with the examples of tests/octweb/registry/typed_numbers.json.
const NUMBER_FORMS = [[".", ","], [",", "."], [",", " "], [",", "'"], [".", " "], [".", "'"]].map(([decimal, thousands]) => ({ decimal, thousands }));
const PAGE_FORM = NUMBER_FORMS[0];
const COMMA_FORM = { decimal: ",", thousands: "" };

// normalise spaces, minus signs and apostrophes, and drop invisible characters
function foldedNumber(text) {
  return text
    .replace(/[\u00a0\u2007\u2009\u202f]/g, " ")
    .replace(/[\u200b-\u200f\u2060\ufeff]/g, "")
    .replace(/\u2212/g, "-")
    .replace(/[\u2019\u02bc]/g, "'")
    .trim();
}

// return the number with a decimal point, or null if the word does not have this form
function plainNumber(word, form) {
  const match = /^([+-]?)\s*([+-]?)([0-9.,' ]*[0-9](?:[eE][+-]?[0-9]{1,5})?)$/.exec(foldedNumber(word));
  if (!match || (match[1] && match[2])) return null;
  const whole = form.thousands ? `[1-9][0-9]{0,2}(?:[${form.thousands}][0-9]{3})+|0|[1-9][0-9]*` : "0|[1-9][0-9]*";
  const point = `[${form.decimal}]`;
  const body = new RegExp(`^(?:(?:${whole})(?:${point}[0-9]+)?|${point}[0-9]+)(?:[eE][+-]?[0-9]{1,5})?$`);
  if (!body.test(match[3])) return null;
  const core = form.thousands ? match[3].replaceAll(form.thousands, "") : match[3];
  return (match[1] || match[2]) + core.replace(form.decimal, ".");
}

// `unit` may follow the number; `decimalComma` means that the training file used decimal commas
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
