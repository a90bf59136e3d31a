//! Reports changes as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Inspector;
use super::routes::blocking;

/// The polling interval for files written by other programs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Reports changes of the session list (`sessions`) and of the viewed session (`session`, with its
/// id). The stream ends at shutdown, and frees its permit when it is dropped.
pub(super) fn events(
    inspector: Arc<Inspector>,
    session: Option<String>,
    permit: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listener = Listener { inspector, session, ticks, seen: None, _permit: permit };
    Sse::new(unfold(listener, Listener::next)).keep_alive(KeepAlive::default())
}

/// The stamps of the session list and of the session at the last poll.
type SessionStamps = (Vec<Option<u64>>, Option<u64>);

struct Listener {
    inspector: Arc<Inspector>,
    session: Option<String>,
    ticks: Interval,
    seen: Option<SessionStamps>,
    _permit: OwnedSemaphorePermit,
}

impl Listener {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            tokio::select! {
                () = self.inspector.shutdown.stopped() => return None,
                _ = self.ticks.tick() => {}
            }
            let (inspector, session) = (self.inspector.clone(), self.session.clone());
            let now = blocking(move || Ok(stamps(&inspector, session.as_deref()))).await.ok()?;
            let Some(seen) = self.seen.replace(now.clone()) else {
                // The first event is sent at once, so that the page knows it is connected.
                return Some((Ok(Event::default().event("hello").data("{}")), self));
            };
            if seen.1 != now.1 {
                // A change of the list is reported at the next poll.
                self.seen = Some((seen.0, now.1));
                let data = json!({ "session": self.session }).to_string();
                return Some((Ok(Event::default().event("session").data(data)), self));
            }
            if seen.0 != now.0 {
                return Some((Ok(Event::default().event("sessions").data("{}")), self));
            }
        }
    }
}

fn stamps(inspector: &Inspector, session: Option<&str>) -> SessionStamps {
    let lists = inspector.sources.iter().map(|source| source.stamp(None)).collect();
    let of = |id: &str| inspector.sources.iter().find_map(|source| source.stamp(Some(id)));
    (lists, session.and_then(of))
}
