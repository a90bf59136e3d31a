//! The load: turns of random sessions at random hosts, and the history of their outcomes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_testkit::Random;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::check::{Operation, Outcome};
use crate::cluster::Host;
use crate::host::Request;

/// The number of turns at a time, for each host.
const CONCURRENT: usize = 8;

/// The longest time that anything may take.
const BOUND: Duration = Duration::from_secs(180);

/// How often a turn is tried once nothing goes wrong any more. The first one may find that a host
/// lost its lease.
const TRIES: u32 = 3;

pub(crate) struct Load {
    pub hosts: Vec<Arc<Host>>,
    pub sessions: Vec<String>,
    history: Mutex<Vec<Operation>>,
    /// The logical time, which is also the source of ids.
    time: AtomicU64,
    /// The turns that may begin.
    allowed: Semaphore,
    begun: watch::Sender<usize>,
}

impl Load {
    pub(crate) fn new(hosts: Vec<Arc<Host>>, sessions: usize) -> Self {
        let sessions = (0..sessions).map(|number| format!("agent:main:direct:s{number}"));
        Self {
            hosts,
            sessions: sessions.collect(),
            history: Mutex::default(),
            time: AtomicU64::new(1),
            allowed: Semaphore::new(0),
            begun: watch::Sender::new(0),
        }
    }

    /// Starts the callers, who wait for permission.
    pub(crate) fn start(self: &Arc<Self>, random: &mut Random) -> JoinSet<()> {
        let mut callers = JoinSet::new();
        for _ in 0..self.hosts.len() * CONCURRENT {
            let (load, mut random) = (self.clone(), Random::seeded(random.next()));
            callers.spawn(async move {
                while let Ok(permit) = load.allowed.acquire().await {
                    permit.forget();
                    load.begun.send_modify(|begun| *begun += 1);
                    let session = &load.sessions[random.below(load.sessions.len())];
                    let host = &load.hosts[random.below(load.hosts.len())];
                    load.turn(session, host, random.once_in(4)).await;
                }
            });
        }
        callers
    }

    /// Allows more turns to begin.
    pub(crate) fn allow(&self, turns: usize) {
        self.allowed.add_permits(turns);
    }

    /// Waits until this many turns have begun in all.
    pub(crate) async fn wait(&self, turns: usize) {
        let mut begun = self.begun.subscribe();
        let waited = tokio::time::timeout(BOUND, begun.wait_for(|begun| *begun >= turns)).await;
        assert!(waited.is_ok(), "the hosts make no progress");
    }

    /// Waits for the end of the callers.
    pub(crate) async fn end(&self, callers: JoinSet<()>) {
        self.allowed.close();
        let ended = tokio::time::timeout(BOUND, callers.join_all()).await;
        assert!(ended.is_ok(), "a host does not answer");
    }

    async fn turn(&self, session: &str, host: &Host, has_call: bool) -> Outcome {
        let invoked = self.now();
        let request = Request::Turn { id: invoked, session: session.to_owned(), has_call };
        let (outcome, error) = host.ask(invoked, &request).await;
        let operation = Operation {
            id: invoked,
            session: session.to_owned(),
            has_call,
            invoked,
            ended: self.now(),
            outcome,
            said: format!("{}: {error}", host.name),
        };
        self.history.lock().unwrap().push(operation);
        outcome
    }

    fn now(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }

    /// Opens each session once more, with a turn: the first `sample` at each host after the other,
    /// the others at one host. All of these turns must be acknowledged.
    pub(crate) async fn open_all(self: &Arc<Self>, sample: usize) {
        let mut opened = JoinSet::new();
        let few = Arc::new(Semaphore::new(self.hosts.len() * CONCURRENT));
        for number in 0..self.sessions.len() {
            let (load, few) = (self.clone(), few.clone());
            opened.spawn(async move {
                let _one = few.acquire().await;
                let first = number % load.hosts.len();
                let hosts = if number < sample { &*load.hosts } else { &load.hosts[first..=first] };
                for host in hosts {
                    load.open(&load.sessions[number], host).await;
                }
            });
        }
        let ended = tokio::time::timeout(BOUND, opened.join_all()).await;
        assert!(ended.is_ok(), "the sessions are not opened in time");
    }

    async fn open(&self, session: &str, host: &Host) {
        for _ in 0..TRIES {
            if self.turn(session, host, false).await == Outcome::Acknowledged {
                let id = self.now();
                let close = Request::Close { id, session: session.to_owned() };
                let (outcome, error) = host.ask(id, &close).await;
                assert_eq!(outcome, Outcome::Acknowledged, "{session} is not closed: {error}");
                return;
            }
        }
        let history = self.history();
        let last = history.iter().rfind(|own| own.session == session);
        panic!("{session} cannot be used: {}", last.map(ToString::to_string).unwrap_or_default());
    }

    /// Returns the operations so far.
    pub(crate) fn history(&self) -> Vec<Operation> {
        self.history.lock().unwrap().clone()
    }
}
