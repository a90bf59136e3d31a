//! What changes while somebody looks, as server-sent events.

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

/// How often files are looked at that somebody else writes.
const LOOKS: Duration = Duration::from_secs(1);

/// Tells who listens that the list of sessions changed (`sessions`), or the session that is looked at
/// (`session`, with its id). It ends when the server does.
pub(super) fn events(
    inspector: Arc<Inspector>,
    session: Option<String>,
    place: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(LOOKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let listener = Listener { inspector, session, ticks, seen: None, _place: place };
    Sse::new(unfold(listener, Listener::next)).keep_alive(KeepAlive::default())
}

/// The list of sessions and the session, as they were when last looked at.
type Stamps = (Vec<Option<u64>>, Option<u64>);

struct Listener {
    inspector: Arc<Inspector>,
    session: Option<String>,
    ticks: Interval,
    seen: Option<Stamps>,
    _place: OwnedSemaphorePermit,
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
                // Something comes at once, so that the page knows that it is heard.
                return Some((Ok(Event::default().event("hello").data("{}")), self));
            };
            if seen.1 != now.1 {
                // The list will be told of at the next look.
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

fn stamps(inspector: &Inspector, session: Option<&str>) -> Stamps {
    let lists = inspector.sources.iter().map(|source| source.stamp(None)).collect();
    let of = |id: &str| inspector.sources.iter().find_map(|source| source.stamp(Some(id)));
    (lists, session.and_then(of))
}
