// Requests to the server. The responses contain untrusted data of transcripts: they are added to the
// page as text nodes only.

// An error response of the server.
export class Refused extends Error {
  constructor(status, error) {
    super(error.message || "the server gave no reason");
    this.status = status;
    this.kind = error.kind || "";
    this.hint = error.hint || "";
  }
}

const STEP_MS = 150;

// A path of the API; each inserted value is encoded as one segment.
export function path(texts, ...parts) {
  return texts.reduce((all, text, at) => all + encodeURIComponent(parts[at - 1]) + text);
}

export function withQuery(base, asked) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${base}?${text}` : base;
}

// Repeats a request until the session is read. `working` receives the progress.
export async function ask(url, { signal, working } = {}) {
  for (;;) {
    const answer = await send(url, { signal });
    if (answer.status !== 202) return answer.body;
    if (working) working(answer.body.progress);
    await pause(STEP_MS, signal);
  }
}

export async function post(url, token) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  return (await send(url, { method: "POST", headers })).body;
}

async function send(url, options) {
  let answer;
  try {
    answer = await fetch(`api/${url}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, {
      message: "The server does not answer.",
      hint: "Start it again if it was stopped: this page then reconnects.",
    });
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body.error || {});
  return { status: answer.status, body };
}

function pause(ms, signal) {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, ms);
    if (signal) {
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        failed(new DOMException("left", "AbortError"));
      }, { once: true });
    }
  });
}
