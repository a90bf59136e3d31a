//! Puts jobs back whose leases have run out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tracing::{debug, trace, warn};

use crate::clock;
use crate::queue::Queue;

/// Where no lease is out, look again after this long.
const IDLE: Duration = Duration::from_secs(1);

/// Runs until the server ends.
pub async fn run(queue: Arc<Mutex<Queue>>, changed: Arc<Notify>) {
    loop {
        let wait = {
            let queue = queue.lock().await;
            queue.next_deadline().map_or(IDLE, clock::until)
        };
        trace!(wait_ms = wait.as_millis() as u64, "sweeper sleeps");
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = changed.notified() => continue,
        }
        // The list is taken under one lock and worked off under others, so that a long list does
        // not hold up the connections.
        let due = queue.lock().await.expired();
        for id in due {
            let mut queue = queue.lock().await;
            match queue.expire(id) {
                Ok(()) => debug!(%id, "lease ran out"),
                Err(error) => warn!(%id, ?error, "could not put the job back"),
            }
        }
    }
}
