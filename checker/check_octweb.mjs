// The checker of check_octweb.html from the command line: node check_octweb.mjs MODEL PROOF DATA; exit status 0 if all holds.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const page = readFileSync(new URL("check_octweb.html", import.meta.url), "utf8");
const names = "({ checkProof, textOf })";
const { checkProof, textOf } = vm.runInThisContext(`${page.match(/<script>([\s\S]*)<\/script>/)[1]}\n${names}`);
const texts = await Promise.all(process.argv.slice(2, 5).map((name) => textOf(new Blob([readFileSync(name)]))));
const said = await checkProof(...texts);
for (const [holds, words] of said) console.log(`${holds ? "holds" : holds === null ? "not judged" : "does not hold"}: ${words}`);
process.exit(said.every(([holds]) => holds) ? 0 : 1);
