// What changes on the server while the page is open.

const AGAIN_MS = 2000;

// Listens for a session, or for the list alone. `heard` gets the kind of event; the link in the head
// says whether anybody speaks.
export function listen(session, heard) {
  const link = { source: null, timer: 0, closed: false, said: 0 };
  const url = session ? `api/events?session=${encodeURIComponent(session)}` : "api/events";
  const open = () => {
    link.source = new EventSource(url);
    link.source.addEventListener("hello", () => {
      show("live", "Live");
      // What happened while nobody listened is looked up.
      if (link.said > 0) heard("again");
      link.said += 1;
    });
    for (const kind of ["session", "sessions"]) {
      link.source.addEventListener(kind, () => heard(kind));
    }
    link.source.addEventListener("error", () => {
      if (link.closed) return;
      show("lost", "Reconnecting");
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

function show(kind, told) {
  const box = byId("link");
  if (box.textContent === told) return;
  box.className = `link ${kind}`;
  box.textContent = told;
}
