// Live updates from the server.

const AGAIN_MS = 2000;

// Listens for changes of a session and of the list, or of the list alone. `heard` receives the kind
// of event: first `hello`, then `session` or `sessions`, and `again` after a reconnect. The header
// shows the connection state, and a banner explains a lost connection. Returns a function that ends it.
export function listen(session, heard) {
  const link = { source: null, timer: 0, closed: false, hellos: 0 };
  const url = session ? `api/events?session=${encodeURIComponent(session)}` : "api/events";
  const open = () => {
    clearTimeout(link.timer);
    link.source = new EventSource(url);
    link.source.addEventListener("hello", () => {
      show("live", "Live");
      // After a reconnect, the view loads the changes that it missed.
      heard(link.hellos > 0 || lost.since ? "again" : "hello");
      found();
      link.hellos += 1;
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

// The time at which the connection was lost; kept across views.
const lost = { since: null };

function lose() {
  if (lost.since) return;
  lost.since = new Date();
  byId("lost").textContent = `The server has not answered since ${clock(lost.since.getTime()).slice(11)}. The page may be outdated. It reconnects when the server is back.`;
  byId("lost").hidden = false;
}

function found() {
  lost.since = null;
  byId("lost").hidden = true;
}

function show(kind, text) {
  const box = byId("link");
  if (box.textContent === text) return;
  box.className = `link ${kind}`;
  box.textContent = text;
}
