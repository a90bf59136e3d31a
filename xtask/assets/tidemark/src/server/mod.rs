//! Listens, and keeps the sweeper and the connections going.

mod conn;
mod sweeper;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::TcpListener;
use tokio::sync::{Mutex, Notify};
use tracing::{info, warn};

use crate::config::Config;
use crate::lease::WorkerId;
use crate::queue::{Queue, QueueError};
use crate::store::Store;

/// Serves until the process is told to end.
pub async fn run(config: Config) -> Result<(), QueueError> {
    let store = Store::open(&config.folder, config.fsync)?;
    let queue = Arc::new(Mutex::new(Queue::open(store, config.limits)?));
    let changed = Arc::new(Notify::new());
    tokio::spawn(sweeper::run(queue.clone(), changed.clone()));

    let listener = TcpListener::bind(config.listen).await.map_err(crate::store::StoreError::from)?;
    info!(address = %config.listen, "listening");
    let workers = AtomicU32::new(1);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let worker = WorkerId(workers.fetch_add(1, Ordering::Relaxed));
                    info!(worker = worker.0, %peer, "accepted");
                    let (queue, changed) = (queue.clone(), changed.clone());
                    tokio::spawn(async move {
                        if let Err(error) = conn::serve(stream, worker, queue, changed).await {
                            warn!(worker = worker.0, %error, "connection failed");
                        }
                    });
                }
                Err(error) => warn!(%error, "could not accept"),
            },
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    info!("ending");
    queue.lock().await.close()?;
    Ok(())
}
