// Eight turns of one conversation, each reading a big file with a tool; see turns.py.

import { createRequire } from "node:module";

export const BASE = process.argv[2];
export const MODEL = "fake-model";
export const BIG = Array.from(
  { length: 240 },
  (_, n) => `line ${n} of the big file lorem ipsum dolor sit amet\n`,
).join("");

// Packages are in the harness's folder, not next to these files.
const require = createRequire(`${process.argv[3]}/`);
export const load = (name) => import(require.resolve(name));

export async function hold(turn) {
  for (let number = 1; number <= 8; number += 1) {
    let said;
    try {
      said = await turn(`BIGREAD ${number}`);
    } catch (error) {
      said = `${error.name}: ${error.message}`;
    }
    console.log(JSON.stringify({ ok: said.includes("DONE"), said: said.slice(0, 300) }));
  }
}
