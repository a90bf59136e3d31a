//! A model of leases and appends, which is checked exhaustively within bounds.
//!
//! A call of the store is one step, as a transaction is. A request and its answer are two steps, so
//! that requests arrive late, and again if the answer was lost. A host that sleeps is one that takes
//! no step while the time of its row passes; it goes on with the epoch and the end that it knows.

use stateright::{Checker, Model, Property};

/// The number of hosts.
const HOSTS: usize = 3;

/// The bounds of the two checks: sessions and steps. Sessions meet only in the rows of hosts. The first
/// has 320,776 states.
const BOUNDS: [(usize, usize); 2] = [(2, 8), (1, 10)];

const ONE_WRITER: &str = "at most one host can append to a session";
const NO_OLDER_EPOCH: &str = "no line of an epoch follows one of the next";
const NOT_AFTER_GRANT: &str = "no line is written under an epoch after the next was granted";
const NOT_DOUBLED: &str = "a repeated append does not double a line";
const KEPT: &str = "acknowledged lines stay where they were";
const REFUSED: &str = "a host that slept through its lease is refused";
const TAKEN_OVER: &str = "a session of a host that sleeps is taken over";
const LATE: &str = "a host may write after its time, until the session is taken over";
const TRUE: &str = "a host that renews its row knows the leases that it lost";
const REPEATED: &str = "an append whose answer was lost is answered again";

/// The protocol, and which of its checks the store makes.
#[derive(Clone, Copy)]
struct Protocol {
    sessions: usize,
    checks_epoch: bool,
    checks_head: bool,
    /// Whether a host finds from the term of its row, and not from its time, that it has to look at
    /// its leases.
    has_terms: bool,
}

/// A line, with the epoch that it was written under and the newest one at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Line {
    id: u8,
    epoch: u8,
    granted: u8,
}

/// What the store has of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Stored {
    epoch: u8,
    holder: Option<usize>,
    log: Vec<Line>,
    /// The places and ids of acknowledged lines.
    acknowledged: Vec<(usize, u8)>,
    /// The number of lines that hosts made.
    made: u8,
}

/// What a host knows of a session that it holds, or believes to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Held {
    epoch: u8,
    head: usize,
    /// Whether it was in force at a renewal in this term of the host's row.
    is_known: bool,
}

/// An append on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Append {
    id: u8,
    epoch: u8,
    at: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    stored: Vec<Stored>,
    /// Whether the time of a host's row has not passed.
    is_valid: [bool; HOSTS],
    /// For each host and session.
    held: Vec<[Option<Held>; HOSTS]>,
    sent: Vec<[Option<Append>; HOSTS]>,
    was_refused: bool,
    was_repeated: bool,
    was_wrong: bool,
}

/// A step: its host, and its session if it is a step of one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Acquire(usize, usize),
    /// Renews the row of a host. The answer arrives, or is lost.
    Renew(usize, bool),
    Release(usize, usize),
    Expire(usize),
    Send(usize, usize),
    /// An append arrives, and its answer does or is lost.
    Arrive(usize, usize, bool),
}

impl Protocol {
    /// Whether the store lets a host write under an epoch.
    fn allows(self, stored: &Stored, epoch: u8) -> bool {
        !self.checks_epoch || stored.holder.is_some() && stored.epoch == epoch
    }

    /// Appends a line, and returns whether the log has it at its place.
    fn append(self, stored: &mut Stored, line: Append) -> bool {
        let is_at_end = !self.checks_head || stored.log.len() == line.at;
        if is_at_end && self.allows(stored, line.epoch) {
            let Append { id, epoch, .. } = line;
            stored.log.push(Line { id, epoch, granted: stored.epoch });
            return true;
        }
        stored.log.get(line.at).is_some_and(|found| found.id == line.id)
    }

    fn arrive(self, state: &mut State, host: usize, session: usize, is_answered: bool) {
        let Some(line) = state.sent[session][host] else { return };
        let stored = &mut state.stored[session];
        let is_old = line.epoch < stored.epoch;
        let is_repeated = stored.log.iter().any(|found| found.id == line.id);
        let is_written = self.append(stored, line);
        state.was_repeated |= is_repeated && is_written;
        state.was_refused |= is_old && !is_written;
        if !is_answered {
            return;
        }
        state.sent[session][host] = None;
        if is_written {
            stored.acknowledged.push((line.at, line.id));
            stored.acknowledged.sort_unstable();
        }
        let held = &mut state.held[session][host];
        if let Some(known) = held.filter(|known| known.epoch == line.epoch) {
            *held = is_written.then_some(Held { head: line.at + 1, ..known });
        }
    }
}

impl Protocol {
    /// Makes the row of a host valid. After its time, that begins a term: its next renewal that is
    /// answered finds another term, and knows of no lease that it is in force. Without terms, only
    /// an answer to this renewal says so.
    fn extend(self, state: &mut State, host: usize, is_answered: bool) {
        let is_over = !std::mem::replace(&mut state.is_valid[host], true);
        if is_over && (self.has_terms || is_answered) {
            let held = state.held.iter_mut().filter_map(|held| held[host].as_mut());
            held.for_each(|held| held.is_known = false);
        }
    }

    fn renew(self, state: &mut State, host: usize, is_answered: bool) {
        self.extend(state, host, is_answered);
        if !is_answered {
            return;
        }
        for (stored, held) in state.stored.iter().zip(&mut state.held) {
            let Some(known) = &mut held[host] else { continue };
            let is_in_force = stored.holder.is_some() && stored.epoch == known.epoch;
            state.was_wrong |= known.is_known && !is_in_force;
            known.is_known = true;
            if !is_in_force {
                held[host] = None;
            }
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            stored: vec![Stored::default(); self.sessions],
            held: vec![[None; HOSTS]; self.sessions],
            sent: vec![[None; HOSTS]; self.sessions],
            ..State::default()
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for session in 0..self.sessions {
            let stored = &state.stored[session];
            for host in 0..HOSTS {
                let is_free = |holder: usize| holder == host || !state.is_valid[holder];
                if stored.holder.is_none_or(is_free) {
                    steps.push(Step::Acquire(host, session));
                }
                let is_sent = state.sent[session][host].is_some();
                if state.held[session][host].is_some() {
                    steps.push(Step::Release(host, session));
                    if !is_sent {
                        steps.push(Step::Send(host, session));
                    }
                }
                if is_sent {
                    steps.extend([true, false].map(|to| Step::Arrive(host, session, to)));
                }
            }
        }
        let holds = |host: &usize| state.held.iter().any(|held| held[*host].is_some());
        for host in (0..HOSTS).filter(holds) {
            steps.extend([true, false].map(|is_answered| Step::Renew(host, is_answered)));
        }
        steps.extend((0..HOSTS).filter(|host| state.is_valid[*host]).map(Step::Expire));
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut state = before.clone();
        match step {
            Step::Acquire(host, session) => {
                self.extend(&mut state, host, false);
                let stored = &mut state.stored[session];
                stored.epoch += 1;
                stored.holder = Some(host);
                let (epoch, head) = (stored.epoch, stored.log.len());
                let held = Held { epoch, head, is_known: false };
                state.held[session][host] = Some(held);
            }
            Step::Renew(host, is_answered) => self.renew(&mut state, host, is_answered),
            Step::Release(host, session) => {
                let held = state.held[session][host].take()?;
                let stored = &mut state.stored[session];
                if held.epoch == stored.epoch {
                    stored.holder = None;
                }
            }
            Step::Expire(host) => state.is_valid[host] = false,
            Step::Send(host, session) => {
                let (held, stored) = (state.held[session][host]?, &mut state.stored[session]);
                let line = Append { id: stored.made, epoch: held.epoch, at: held.head };
                stored.made += 1;
                state.sent[session][host] = Some(line);
            }
            Step::Arrive(host, session, is_answered) => {
                self.arrive(&mut state, host, session, is_answered);
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_WRITER, |protocol: &Self, state: &State| {
                state.stored.iter().zip(&state.held).all(|(stored, held)| {
                    let writers = held.iter().flatten();
                    writers.filter(|held| protocol.allows(stored, held.epoch)).count() <= 1
                })
            }),
            Property::always(NO_OLDER_EPOCH, |_, state: &State| {
                state.stored.iter().all(|stored| stored.log.is_sorted_by_key(|line| line.epoch))
            }),
            Property::always(NOT_AFTER_GRANT, |_, state: &State| {
                let mut lines = state.stored.iter().flat_map(|stored| &stored.log);
                lines.all(|line| line.epoch == line.granted)
            }),
            Property::always(NOT_DOUBLED, |_, state: &State| {
                state.stored.iter().all(|Stored { log, .. }| {
                    (1..log.len()).all(|n| log[..n].iter().all(|line| line.id != log[n].id))
                })
            }),
            Property::always(KEPT, |_, state: &State| {
                state.stored.iter().all(|stored| {
                    let has = |&(at, id): &(usize, u8)| {
                        stored.log.get(at).is_some_and(|line| line.id == id)
                    };
                    stored.acknowledged.iter().all(has)
                })
            }),
            Property::always(TRUE, |_, state: &State| !state.was_wrong),
            Property::sometimes(LATE, |protocol: &Self, state: &State| {
                (0..HOSTS).any(|host| {
                    let mut sessions = state.stored.iter().zip(&state.held);
                    let may_write = |(stored, held): (&Stored, &[Option<Held>; HOSTS])| {
                        held[host].is_some_and(|held| protocol.allows(stored, held.epoch))
                    };
                    !state.is_valid[host] && sessions.any(may_write)
                })
            }),
            Property::sometimes(REFUSED, |_, state: &State| state.was_refused),
            Property::sometimes(REPEATED, |_, state: &State| state.was_repeated),
            Property::sometimes(TAKEN_OVER, |_, state: &State| {
                state.stored.iter().zip(&state.held).any(|(stored, held)| {
                    held.iter().flatten().any(|held| held.epoch < stored.epoch)
                })
            }),
        ]
    }
}

/// Returns the properties for which the checker found an example or a counterexample.
fn found(protocol: Protocol, steps: usize) -> Vec<&'static str> {
    // The first state counts, too. With one thread, each state is reached by a shortest path.
    let checker = protocol.checker().target_max_depth(steps + 1).threads(1).spawn_bfs().join();
    checker.discoveries().into_keys().collect()
}

#[test]
fn leases_keep_hosts_apart() {
    for (sessions, steps) in BOUNDS {
        let whole = Protocol { sessions, checks_epoch: true, checks_head: true, has_terms: true };
        let mut found = found(whole, steps);
        found.sort_unstable();
        assert_eq!(found, [LATE, REFUSED, TAKEN_OVER, REPEATED], "{sessions} sessions");
    }
}

#[test]
fn a_store_that_checks_less_is_found_out() {
    let checked = |checks_epoch, checks_head| {
        let has_terms = true;
        found(Protocol { sessions: 1, checks_epoch, checks_head, has_terms }, BOUNDS[0].1)
    };
    let whole = Protocol { sessions: 1, checks_epoch: true, checks_head: true, has_terms: true };
    // The row is valid again, and the host does not know that it was not.
    let no_terms = Protocol { has_terms: false, ..whole };
    assert!(found(no_terms, BOUNDS[0].1).contains(&TRUE));
    let no_epoch = checked(false, true);
    assert!(no_epoch.contains(&ONE_WRITER) && no_epoch.contains(&NOT_AFTER_GRANT), "{no_epoch:?}");
    assert!(checked(true, false).contains(&NOT_DOUBLED));
    let neither = checked(false, false);
    assert!(neither.contains(&NO_OLDER_EPOCH) && neither.contains(&KEPT), "{neither:?}");
}
