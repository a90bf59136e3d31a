// Twelve turns of one conversation, each reading a big file with a tool, for the examples.
//
// MODEL is the model. OPENAI_BASE_URL is another provider than OpenAI, such as the fake one of
// tests/adapters/run.sh. CTX=off runs an example without ctx.

export const MODEL = process.env.MODEL ?? "fake-model";
export const WITH_CTX = process.env.CTX !== "off";
export const BIG = Array.from(
  { length: 240 },
  (_, n) => `line ${n} of the big file lorem ipsum dolor sit amet\n`,
).join("");

/** Calls `turn` with the user's words, and prints whether the answer is the expected one. */
export async function hold(turn) {
  for (let number = 1; number <= 12; number += 1) {
    let said;
    try {
      said = String(await turn(`BIGREAD ${number}: read the big file with the tool, then answer DONE.`));
    } catch (error) {
      said = `${error.name}: ${error.message}`;
    }
    console.log(JSON.stringify({ ok: said.includes("DONE"), said: said.slice(0, 300) }));
  }
}
