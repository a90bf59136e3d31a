// What changes on the server while the page is open.

const AGAIN_MS = 2000;

// Listens for a session, or for the list alone. `heard` gets the kind of event: `hello` at first, and
// `again` where the server was gone and is back. The head says whether anybody speaks, and where
// nobody does a banner says what that means.
export function listen(session, heard) {
  const link = { source: null, timer: 0, closed: false, said: 0 };
  const url = session ? `api/events?session=${encodeURIComponent(session)}` : "api/events";
  const open = () => {
    clearTimeout(link.timer);
    link.source = new EventSource(url);
    link.source.addEventListener("hello", () => {
      show("live", "Live");
      // What happened while nobody listened is looked up.
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

// When the server was found to be gone; it outlives a change of views.
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
