// The page's checker over many cases: a JSON list of [model, proof, data] on standard input, a JSON list of truth values out. A fourth text is
// counts.npz in base 64.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const page = readFileSync(process.argv[2], "utf8");
const { checkProof } = vm.runInThisContext(`${page.match(/<script>([\s\S]*)<\/script>/)[1]}\n({ checkProof })`);
const out = [];
for (const [model, proof, data, packed] of JSON.parse(readFileSync(0, "utf8")))
  out.push(await checkProof(model, proof, data, packed ? new Uint8Array(Buffer.from(packed, "base64")) : null));
console.log(JSON.stringify(out));
