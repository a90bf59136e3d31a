//! Notifications between hosts, over one connection for each process.
//!
//! They are sent over a connection of their own, and not in the transactions that they tell of: a
//! transaction that notifies holds a lock of the whole server until its commit is on disk, so appends
//! would wait for each other. A notification may be lost; hosts ask again without it, too. Behind
//! a pooler in transaction mode none arrives.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ctx_store::{Change, ChangeFuture, Changes};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::connect::Target;
use crate::error::Failure;
use crate::{FIRST_WAIT, PostgresStore, locked};

/// The longest wait before the next connection is tried.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// An idle connection is tried this often.
const PING: Duration = Duration::from_secs(10);

/// The shortest time between two transactions that notify. What happens meanwhile is sent together.
const PAUSE: Duration = Duration::from_millis(20);

/// The number of names that are watched, above which those that are not any more are looked for.
const FEW: usize = 64;

/// The notifications of a process.
pub(crate) struct Notifications {
    target: Target,
    /// What the hashes of this database begin with.
    key: String,
    is_started: AtomicBool,
    is_listening: AtomicBool,
    watched: Mutex<HashMap<String, watch::Sender<()>>>,
    /// The messages that wait to be sent.
    unsent: Mutex<BTreeSet<String>>,
    wake: Arc<Notify>,
}

impl Notifications {
    pub(crate) fn new(target: Target, key: String) -> Arc<Self> {
        Arc::new(Self {
            target,
            key,
            is_started: AtomicBool::default(),
            is_listening: AtomicBool::default(),
            watched: Mutex::default(),
            unsent: Mutex::default(),
            wake: Arc::default(),
        })
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Relaxed)
    }

    /// Connects, unless that was done.
    fn start(self: &Arc<Self>) {
        if !self.is_started.swap(true, Ordering::Relaxed) {
            tokio::spawn(run(Arc::downgrade(self), self.wake.clone()));
        }
    }

    /// Tells other hosts of a change.
    fn send(self: &Arc<Self>, tenant: &str, change: Change<'_>) {
        self.start();
        locked(&self.unsent).insert(self.hash(tenant, change));
        self.wake.notify_one();
    }

    fn watch(self: &Arc<Self>, tenant: &str, change: Change<'_>) -> watch::Receiver<()> {
        self.start();
        let mut watched = locked(&self.watched);
        if watched.len() >= FEW && watched.len() == watched.capacity() {
            watched.retain(|_, sender| sender.receiver_count() > 0);
        }
        watched.entry(self.hash(tenant, change)).or_default().subscribe()
    }

    fn received(&self, hash: &str) {
        if let Some(sender) = locked(&self.watched).get(hash) {
            sender.send_replace(());
        }
    }

    /// Returns what is sent for a change. It tells nothing to those who do not know the key.
    fn hash(&self, tenant: &str, change: Change<'_>) -> String {
        let names: [&str; 4] = match change {
            Change::Released(session) => ["released", tenant, &session.agent, &session.key],
            Change::Wanted(holder) => ["wanted", tenant, holder, ""],
            Change::Records(agent) => ["records", tenant, agent, ""],
        };
        let mut hasher = blake3::Hasher::new();
        for name in [&self.key].into_iter().map(String::as_str).chain(names) {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

impl Drop for Notifications {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Connects again and again while the store exists.
async fn run(notifications: Weak<Notifications>, wake: Arc<Notify>) {
    let mut wait = FIRST_WAIT;
    while let Some(this) = notifications.upgrade() {
        let target = this.target.clone();
        drop(this);
        let ended = listen(&notifications, &target, &wake).await;
        let Some(this) = notifications.upgrade() else { return };
        if this.is_listening.swap(false, Ordering::Relaxed) {
            wait = FIRST_WAIT;
        }
        drop(this);
        if ended.is_err() {
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

/// Listens and sends over a new connection, until it fails or the store is dropped.
async fn listen(
    notifications: &Weak<Notifications>,
    target: &Target,
    wake: &Arc<Notify>,
) -> Result<(), Failure> {
    let (receiver, closed) = (notifications.clone(), wake.clone());
    let received = move |hash: Option<&str>| match (receiver.upgrade(), hash) {
        (Some(this), Some(hash)) => this.received(hash),
        // The connection is closed: the next statement fails.
        _ => closed.notify_one(),
    };
    let limited = |time| Failure::Silent(time);
    let client = timeout(PING, target.connect(received)).await.map_err(|_| limited(PING))??;
    let mut sql = "listen ctx".to_owned();
    loop {
        timeout(PING, client.batch_execute(&sql)).await.map_err(|_| limited(PING))??;
        sleep(PAUSE).await;
        {
            let Some(this) = notifications.upgrade() else { return Ok(()) };
            this.is_listening.store(true, Ordering::Relaxed);
        }
        let _ = timeout(PING, wake.notified()).await;
        let Some(this) = notifications.upgrade() else { return Ok(()) };
        sql = statement(&std::mem::take(&mut *locked(&this.unsent)));
    }
}

/// Returns the statement that sends hashes. It need not be on disk: the commit does not wait.
fn statement(hashes: &BTreeSet<String>) -> String {
    if hashes.is_empty() {
        return "select 1".to_owned();
    }
    let hashes: Vec<_> = hashes.iter().map(|hash| format!("'{hash}'")).collect();
    format!(
        "begin; set local synchronous_commit = off; \
         select pg_notify('ctx', hash) from unnest(array[{}]) as hash; commit",
        hashes.join(", ")
    )
}

impl PostgresStore {
    /// Tells other hosts of a change.
    pub(crate) fn notify(&self, change: Change<'_>) {
        self.shared.notifications.send(&self.options.tenant, change);
    }
}

impl Changes for PostgresStore {
    fn changed(&self, change: Change<'_>) -> ChangeFuture {
        let mut watched = self.shared.notifications.watch(&self.options.tenant, change);
        Box::pin(async move {
            if watched.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}
