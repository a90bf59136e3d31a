//! How an engine has fared, and what follows from it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use ctx_core::{EngineFailure, EngineHealth, EngineNote, EngineState, LeaseState, Timestamp};

use ctx_engine_sdk::protocol::verb;

use super::{Remark, Terms, Trouble};

/// So many strikes, and another engine serves.
const STRIKES: u32 = 3;

/// How often an engine is started again.
const MOST_RESTARTS: u32 = 5;

/// The pause before the first of them. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What was asked when an engine failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) verb: &'a str,
    pub(super) at: Timestamp,
}

/// The state of an engine's carrier after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried<'a> {
    /// Who serves instead; nobody where failures are errors.
    pub(super) stand_in: Option<&'a str>,
    pub(super) is_lost: bool,
    pub(super) can_reopen: bool,
    /// Whether this failure cost the lease on the session's compaction.
    pub(super) lost_lease: bool,
    /// By the supervisor's clock.
    pub(super) now: Duration,
}

/// What the supervisor knows of an engine's health.
#[derive(Debug)]
pub(super) struct Record {
    id: String,
    sha256: Option<String>,
    carrier: &'static str,
    pub(super) version: String,
    state: EngineState,
    strikes: u32,
    restarts: u32,
    pub(super) lease: LeaseState,
    last_error: Option<EngineFailure>,
    /// Requests and compactions that it made.
    answered: u64,
    failures: u64,
    /// The verbs that failed when they were last called.
    failing: BTreeSet<String>,
    /// When it may be started again.
    pause_until: Option<Duration>,
    was_started: bool,
    warnings: Vec<Warning>,
    has_remarked: bool,
    /// The kinds of failure that a person was told of.
    told: BTreeSet<Kind>,
}

/// Failures are of one kind where the same call fails for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    verb: String,
    name: &'static str,
}

/// What a person is to be told.
#[derive(Debug)]
struct Warning {
    text: String,
    of: About,
}

/// What a warning that was not taken yet is part of, where a later one may tell the whole story.
#[derive(Debug, PartialEq, Eq)]
enum About {
    /// An engine that is given up compacts nothing either.
    Lease,
    /// One failure, after which it goes on.
    Failure(Kind),
    Other,
}

impl Record {
    pub(super) fn new(terms: &Terms, carrier: &'static str) -> Self {
        Self {
            id: terms.id.clone(),
            sha256: terms.sha256.clone(),
            carrier,
            version: terms.version.clone(),
            state: EngineState::Ok,
            strikes: 0,
            restarts: 0,
            lease: LeaseState::default(),
            last_error: None,
            answered: 0,
            failures: 0,
            failing: BTreeSet::new(),
            pause_until: None,
            was_started: false,
            warnings: Vec::new(),
            has_remarked: false,
            told: BTreeSet::new(),
        }
    }

    /// Notes that it is being started, if it may be.
    ///
    /// # Errors
    ///
    /// Why it may not.
    pub(super) fn start(&mut self, now: Duration) -> Result<(), String> {
        let pauses = self.pause_until.is_some_and(|until| now < until);
        if self.state == EngineState::Failed || pauses {
            return Err(self.why_away());
        }
        self.restarts += u32::from(self.was_started);
        self.was_started = true;
        Ok(())
    }

    /// Notes that it came up.
    pub(super) fn is_up(&mut self, version: &str) {
        self.version = version.to_owned();
        self.state = EngineState::Ok;
        self.strikes = 0;
        self.pause_until = None;
        self.did(verb::HELLO);
    }

    /// Notes that it did what it was asked.
    pub(super) fn did(&mut self, verb: &str) {
        self.failing.remove(verb);
        self.answered += u64::from(matches!(verb, verb::ASSEMBLE | verb::COMPACT));
    }

    /// Notes a failure, and says whether the engine serves no longer.
    pub(super) fn failed(
        &mut self,
        trouble: &Trouble,
        asked: Asked<'_>,
        carried: Carried<'_>,
    ) -> bool {
        if trouble.is_a_strike() {
            self.strikes += 1;
            self.failures += 1;
            self.failing.insert(asked.verb.to_owned());
        }
        self.last_error = Some(EngineFailure {
            verb: asked.verb.to_owned(),
            name: Cow::Borrowed(trouble.name()),
            message: trouble.to_string(),
            at: asked.at,
        });
        let is_down = carried.is_lost || self.strikes >= STRIKES || trouble.is_for_good();
        if !is_down {
            self.tell_failure(trouble, asked.verb, carried);
            return false;
        }
        let comes_back =
            carried.can_reopen && !trouble.is_for_good() && self.restarts < MOST_RESTARTS;
        let state = if comes_back { EngineState::Degraded } else { EngineState::Failed };
        let pause = FIRST_PAUSE * (1 << self.restarts.min(MOST_RESTARTS));
        self.pause_until = comes_back.then(|| carried.now + pause);
        if std::mem::replace(&mut self.state, state) == state {
            self.tell_failure(trouble, asked.verb, carried);
        } else {
            let until = match (comes_back, carried.can_reopen) {
                (true, _) => format!("for {pause:?}; then it is started again"),
                (false, true) => "from now on".to_owned(),
                (false, false) => "until this program is started again".to_owned(),
            };
            self.tell_end(trouble, asked.verb, carried, &until);
        }
        true
    }

    /// Tells that it serves no longer.
    fn tell_end(&mut self, trouble: &Trouble, verb: &str, carried: Carried<'_>, until: &str) {
        let kind = Kind { verb: verb.to_owned(), name: trouble.name() };
        let has = |warnings: &[Warning]| warnings.iter().any(|w| w.of == About::Lease);
        let lost_lease = carried.lost_lease || has(&self.warnings);
        // All of it is one story, told in one warning.
        let part = About::Failure(kind.clone());
        self.warnings.retain(|warning| warning.of != About::Lease && warning.of != part);
        self.told.insert(kind);
        let lease = if lost_lease { "; it compacts this session no longer" } else { "" };
        // A process that merely answered wrongly did not come to an end by itself.
        let (failed, ended) = match (carried.is_lost || trouble.is_for_good(), carried.can_reopen) {
            (true, _) => ("failed".to_owned(), ""),
            (false, true) => (format!("failed {STRIKES} times, the last"), "it is ended, and "),
            (false, false) => {
                (format!("failed {STRIKES} times, the last"), "it is asked no more, and ")
            }
        };
        let serves = carried.stand_in.map_or("no engine serves", |_| "the default engine serves");
        self.warn(
            format!(
                "the context engine '{}' {failed}: {trouble} (in '{verb}'); {ended}{serves} \
                 {until}{lease}{}",
                self.id,
                in_brackets(trouble.hint()),
            ),
            About::Other,
        );
    }

    /// Tells of a failure after which it goes on, the first of its kind. Where failures are errors,
    /// the error says it.
    fn tell_failure(&mut self, trouble: &Trouble, verb: &str, carried: Carried<'_>) {
        let kind = Kind { verb: verb.to_owned(), name: trouble.name() };
        if carried.lost_lease {
            self.told.insert(kind);
            let text = format!(
                "the context engine '{}' compacts this session no longer: {trouble}; the default \
                 engine does",
                self.id,
            );
            return self.warn(text, About::Lease);
        }
        let Some(stand_in) = carried.stand_in.filter(|_| !trouble.is_cancelled()) else { return };
        let is_known = trouble.is_misjudged() && std::mem::replace(&mut self.has_remarked, true);
        if is_known || !self.told.insert(kind.clone()) {
            return;
        }
        let served = match verb {
            verb::ASSEMBLE | verb::COMPACT | verb::HELLO => format!("; '{stand_in}' served"),
            _ => String::new(),
        };
        let hint = in_brackets(trouble.hint());
        let id = &self.id;
        let text =
            format!("the context engine '{id}' failed: {trouble} (in '{verb}'){served}{hint}");
        self.warn(text, About::Failure(kind));
    }

    /// Notes what is odd in an answer that is carried out all the same. It is told once.
    pub(super) fn remark(&mut self, remark: &Remark) {
        if !std::mem::replace(&mut self.has_remarked, true) {
            self.warn(format!("the context engine '{}': {remark}", self.id), About::Other);
        }
    }

    fn warn(&mut self, text: String, of: About) {
        tracing::warn!(engine = %self.id, "{text}");
        self.warnings.push(Warning { text, of });
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.drain(..).map(|warning| warning.text).collect()
    }

    pub(super) fn why_away(&self) -> String {
        match &self.last_error {
            Some(error) => format!("{}: {}", error.name, error.message),
            None => self.state.name().to_owned(),
        }
    }

    /// What the manifest of a turn says, with the reason where another engine served it.
    pub(super) fn note(&self, reason: Option<String>) -> EngineNote {
        EngineNote { id: self.id.clone(), state: self.state, reason }
    }

    /// How it fares; `stand_in` serves where it does not.
    pub(super) fn health(&self, stand_in: Option<Cow<'static, str>>) -> EngineHealth {
        EngineHealth {
            id: self.id.clone(),
            sha256: self.sha256.clone(),
            stand_in,
            answered: self.answered,
            failures: self.failures,
            failing: !self.failing.is_empty(),
            carrier: Cow::Borrowed(self.carrier),
            version: self.version.clone(),
            state: self.state,
            strikes: self.strikes,
            lease: self.lease,
            last_error: self.last_error.clone(),
            restarts: self.restarts,
        }
    }
}

/// A hint at the end of a warning, which is one line.
fn in_brackets(hint: Option<String>) -> String {
    hint.map(|hint| format!(" ({})", hint.replace('\n', " | "))).unwrap_or_default()
}
