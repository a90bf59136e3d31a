//! The load: turns of random sessions at random hosts, and the history of their outcomes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_testkit::Random;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::check::{Operation, Outcome, Removal};
use crate::cluster::Host;
use crate::host::Request;

/// The number of turns at a time, for each host.
const CONCURRENT: usize = 8;

/// Of this number of sessions one is removed now and then. Of another one turns are forgotten, if it
/// is one of the first [`FORGETFUL`].
const KINDS: usize = 4;

/// The agent of these is held as a whole while a turn is forgotten, so it has few sessions.
const FORGETFUL: usize = 20;

/// What their keys begin with.
const FORGETFUL_AGENT: &str = "agent:other:";

/// One of this number of requests to them is a removal.
const REMOVED: usize = 8;

/// The longest time that anything may take.
const BOUND: Duration = Duration::from_secs(180);

/// How often a turn is tried once nothing goes wrong any more. The first one may find that a host
/// lost its lease.
const TRIES: u32 = 3;

pub(crate) struct Load {
    pub hosts: Vec<Arc<Host>>,
    pub sessions: Vec<String>,
    history: Mutex<Vec<Operation>>,
    removals: Mutex<Vec<Removal>>,
    forgetting: tokio::sync::Mutex<()>,
    /// The logical time, which is also the source of ids.
    time: AtomicU64,
    /// The turns that may begin.
    allowed: Semaphore,
    begun: watch::Sender<usize>,
}

impl Load {
    pub(crate) fn new(hosts: Vec<Arc<Host>>, sessions: usize) -> Self {
        let sessions = (0..sessions).map(|number| {
            let agent = if is_forgetful(number) { FORGETFUL_AGENT } else { "agent:main:" };
            format!("{agent}direct:s{number}")
        });
        Self {
            hosts,
            sessions: sessions.collect(),
            history: Mutex::default(),
            removals: Mutex::default(),
            forgetting: tokio::sync::Mutex::default(),
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
                    let number = random.below(load.sessions.len());
                    let session = &load.sessions[number];
                    let host = &load.hosts[random.below(load.hosts.len())];
                    let is_removal = random.once_in(REMOVED);
                    if !is_removal || !load.erase(number, host, &mut random).await {
                        // The call of a tool has no text that can be forgotten.
                        let has_call = random.once_in(4) && !is_forgetful(number);
                        load.turn(session, host, has_call).await;
                    }
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

    /// Removes a session or forgets a turn, if that is done to sessions with this number. Returns
    /// whether it did.
    async fn erase(&self, number: usize, host: &Host, random: &mut Random) -> bool {
        if number.is_multiple_of(KINDS) {
            self.remove(&self.sessions[number], host).await;
            return true;
        }
        is_forgetful(number) && self.forget(random, host).await
    }

    async fn remove(&self, session: &str, host: &Host) -> Outcome {
        let id = self.now();
        let request = Request::Remove { id, session: session.to_owned() };
        self.removal(session, None, host, (id, request)).await
    }

    /// Forgets a turn that was acknowledged, unless another one is being forgotten. Returns whether
    /// it did.
    async fn forget(&self, random: &mut Random, host: &Host) -> bool {
        let Ok(_one) = self.forgetting.try_lock() else { return false };
        let known = self.known_to_forget();
        if known.is_empty() {
            return false;
        }
        let (session, turn) = &known[random.below(known.len())];
        self.forget_turn(session, *turn, host).await;
        true
    }

    /// Returns the turns that may be forgotten, with their sessions.
    fn known_to_forget(&self) -> Vec<(String, u64)> {
        let history = self.history.lock().unwrap();
        let own = history.iter().filter(|own| {
            own.outcome == Outcome::Acknowledged && own.session.starts_with(FORGETFUL_AGENT)
        });
        own.map(|own| (own.session.clone(), own.id)).collect()
    }

    async fn forget_turn(&self, session: &str, turn: u64, host: &Host) -> Outcome {
        let id = self.now();
        let request = Request::Forget { id, session: session.to_owned(), turn };
        self.removal(session, Some(turn), host, (id, request)).await
    }

    /// Repeats the removals that failed, at the same hosts: this completes them.
    pub(crate) async fn repeat_removals(&self) {
        let ended = tokio::time::timeout(BOUND, self.repeat_all()).await;
        assert!(ended.is_ok(), "the removals are not completed in time");
    }

    async fn repeat_all(&self) {
        let failed = |own: &Removal| own.outcome == Outcome::Unknown;
        for own in self.removals().into_iter().filter(failed) {
            let name = own.said.split(':').next().unwrap_or_default();
            let host = self.hosts.iter().find(|host| host.name == name).expect("it has a host");
            let mut outcome = Outcome::Unknown;
            for _ in 0..TRIES {
                if outcome != Outcome::Acknowledged {
                    outcome = match own.operation {
                        None => self.remove(&own.session, host).await,
                        Some(turn) => self.forget_turn(&own.session, turn, host).await,
                    };
                }
            }
            let last = self.removals().pop().map(|own| own.to_string()).unwrap_or_default();
            assert_eq!(outcome, Outcome::Acknowledged, "{last}");
        }
    }

    async fn removal(
        &self,
        session: &str,
        operation: Option<u64>,
        host: &Host,
        (invoked, request): (u64, Request),
    ) -> Outcome {
        let (outcome, error) = host.ask(invoked, &request).await;
        let removal = Removal {
            session: session.to_owned(),
            operation,
            invoked,
            ended: self.now(),
            outcome,
            said: format!("{}: {error}", host.name),
        };
        self.removals.lock().unwrap().push(removal);
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

    /// Returns the removals so far.
    pub(crate) fn removals(&self) -> Vec<Removal> {
        self.removals.lock().unwrap().clone()
    }
}

/// Whether turns of a session are forgotten.
fn is_forgetful(number: usize) -> bool {
    number < FORGETFUL && number % KINDS == 1
}
