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
pub(super) struct Carried {
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
}

/// What a person is to be told.
#[derive(Debug)]
struct Warning {
    text: String,
    /// Whether it only tells of the lease: an engine that is given up compacts nothing either.
    is_of_lease: bool,
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
    pub(super) fn failed(&mut self, trouble: &Trouble, asked: Asked<'_>, carried: Carried) -> bool {
        if trouble.is_a_strike() {
            self.strikes += 1;
            self.failures += 1;
            self.failing.insert(asked.verb.to_owned());
        }
        let hint = trouble.hint();
        self.last_error = Some(EngineFailure {
            verb: asked.verb.to_owned(),
            name: Cow::Borrowed(trouble.name()),
            message: trouble.to_string(),
            at: asked.at,
        });
        let is_down = carried.is_lost || self.strikes >= STRIKES || trouble.is_for_good();
        if !is_down {
            self.failed_once(trouble, carried.lost_lease);
            return false;
        }
        let comes_back =
            carried.can_reopen && !trouble.is_for_good() && self.restarts < MOST_RESTARTS;
        let state = if comes_back { EngineState::Degraded } else { EngineState::Failed };
        let pause = FIRST_PAUSE * (1 << self.restarts.min(MOST_RESTARTS));
        self.pause_until = comes_back.then(|| carried.now + pause);
        if self.state != state {
            self.state = state;
            // Both are one story, told in one warning.
            let told = self.warnings.len();
            self.warnings.retain(|warning| !warning.is_of_lease);
            let lost_lease = carried.lost_lease || self.warnings.len() < told;
            let lease = if lost_lease { "; it compacts this session no longer" } else { "" };
            let until = match (comes_back, carried.can_reopen) {
                (true, _) => format!("for {pause:?}; then it is started again"),
                (false, true) => "from now on".to_owned(),
                (false, false) => "until this program is started again".to_owned(),
            };
            self.warn(format!(
                "the context engine '{}' failed: {trouble} (in '{}'); the default engine serves \
                 {until}{lease}{}",
                self.id,
                asked.verb,
                // It is said in one line.
                hint.map(|hint| format!(" ({})", hint.replace('\n', " | "))).unwrap_or_default(),
            ));
        }
        true
    }

    /// What is worth a warning of a failure after which it goes on.
    fn failed_once(&mut self, trouble: &Trouble, lost_lease: bool) {
        if lost_lease {
            self.warn(format!(
                "the context engine '{}' compacts this session no longer: {trouble}; the default \
                 engine does",
                self.id,
            ));
            self.warnings.last_mut().into_iter().for_each(|warning| warning.is_of_lease = true);
        } else if trouble.is_misjudged() && !std::mem::replace(&mut self.has_remarked, true) {
            self.warn(format!(
                "the context engine '{}': {trouble}; the default engine serves such turns",
                self.id,
            ));
        }
    }

    /// Notes what is odd in an answer that is carried out all the same. It is told once.
    pub(super) fn remark(&mut self, remark: &Remark) {
        if !std::mem::replace(&mut self.has_remarked, true) {
            self.warn(format!("the context engine '{}': {remark}", self.id));
        }
    }

    fn warn(&mut self, text: String) {
        tracing::warn!(engine = %self.id, "{text}");
        self.warnings.push(Warning { text, is_of_lease: false });
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
