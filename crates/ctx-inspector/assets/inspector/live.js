// Live updates from the server.

const AGAIN_MS = 2000;

// Listens for changes of a session, or of the list alone. `heard` receives the kind of event:
// `hello` at first, and `again` after a reconnect. The header shows the connection state, and a
// banner explains a lost connection.
export function listen(session, heard) {
  const link = { source: null, timer: 0, closed: false, said: 0 };
  const url = session ? `api/events?session=${encodeURIComponent(session)}` : "api/events";
  const open = () => {
    clearTimeout(link.timer);
    link.source = new EventSource(url);
    link.source.addEventListener("hello", () => {
      show("live", "Live");
      // Changes missed in the meantime are loaded.
      heard(link.said > 0 || lost.since ? "again" : "hello");
      found();
      link.said += 1;
    });
    for (const kind of ["session", "sessions"]) {
      link.source.addEventListener(kind, () => heard(kind));
    }
    link.source.addEventListener("error", () => {
      if (link.closed) return;
      show("lost", "Reconnecting");
      lose();
      if (link.source.readyState !== EventSource.CLOSED) return;
      clearTimeout(link.timer);
      link.timer = setTimeout(open, AGAIN_MS);
    });
  };
  open();
  return () => {
    link.closed = true;
    clearTimeout(link.timer);
    link.source.close();
  };
}

// When the connection was lost; kept across views.
const lost = { since: null };

function lose() {
  if (lost.since) return;
  lost.since = new Date();
  byId("lost").textContent = `The server has not answered since ${clock(lost.since.getTime()).slice(11)}. What is shown may be old. This page goes on by itself when the server is back.`;
  byId("lost").hidden = false;
}

function found() {
  lost.since = null;
  byId("lost").hidden = true;
}

function show(kind, told) {
  const box = byId("link");
  if (box.textContent === told) return;
  box.className = `link ${kind}`;
  box.textContent = told;
}
