//! The health of an engine, and its consequences.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use ctx_core::{EngineFailure, EngineHealth, EngineNote, EngineState, LeaseState, Timestamp};

use ctx_engine_sdk::protocol::verb;

use super::{EngineError, EngineSpec, EstimateOff};

/// Number of strikes after which another engine serves.
const STRIKES: u32 = 3;

/// Maximum number of restarts.
const MAX_RESTARTS: u32 = 5;

/// The pause before the first restart. It doubles with each further restart.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The call in which an engine failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedCall<'a> {
    pub(super) verb: &'a str,
    pub(super) at: Timestamp,
}

/// The state of an engine's transport after a failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailureContext<'a> {
    /// The engine that serves instead; `None` if failures are errors.
    pub(super) fallback: Option<&'a str>,
    pub(super) is_lost: bool,
    pub(super) can_restart: bool,
    /// Whether this failure revoked the lease on the session's compaction.
    pub(super) lost_lease: bool,
    /// The current time of the supervisor's clock.
    pub(super) now: Duration,
}

/// The supervisor's record of an engine's health.
#[derive(Debug)]
pub(super) struct HealthRecord {
    /// What is reported, except for the fallback and whether calls fail.
    pub(super) health: EngineHealth,
    /// The verbs whose last call failed.
    failing: BTreeSet<String>,
    /// The earliest time of a restart.
    pause_until: Option<Duration>,
    was_started: bool,
    warnings: Vec<Warning>,
    has_warned_of_estimate: bool,
    /// The kinds of failure already reported to the user.
    reported: BTreeSet<FailureKind>,
}

/// Failures are of one kind if the same call fails for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FailureKind {
    verb: String,
    name: &'static str,
}

/// A warning for the user.
#[derive(Debug)]
struct Warning {
    text: String,
    of: WarningSubject,
}

/// The subject of a pending warning, which a later warning may include.
#[derive(Debug, PartialEq, Eq)]
enum WarningSubject {
    /// The lost lease; a warning that the engine is given up includes it.
    Lease,
    /// One failure, after which the engine goes on.
    Failure(FailureKind),
    Other,
}

impl HealthRecord {
    pub(super) fn new(spec: &EngineSpec, transport: &'static str) -> Self {
        Self {
            health: EngineHealth {
                id: spec.id.clone(),
                carrier: Cow::Borrowed(transport),
                version: spec.version.clone(),
                sha256: spec.sha256.clone(),
                state: EngineState::Ok,
                strikes: 0,
                lease: LeaseState::default(),
                last_error: None,
                restarts: 0,
                answered: 0,
                failures: 0,
                failing: false,
                stand_in: None,
            },
            failing: BTreeSet::new(),
            pause_until: None,
            was_started: false,
            warnings: Vec::new(),
            has_warned_of_estimate: false,
            reported: BTreeSet::new(),
        }
    }

    /// Records a start of the engine, if a start is allowed.
    ///
    /// # Errors
    ///
    /// Why it may not be started.
    pub(super) fn start(&mut self, now: Duration) -> Result<(), String> {
        let pauses = self.pause_until.is_some_and(|until| now < until);
        if self.health.state == EngineState::Failed || pauses {
            return Err(self.why_unavailable());
        }
        self.health.restarts += u32::from(self.was_started);
        self.was_started = true;
        Ok(())
    }

    /// Records that the engine has started.
    pub(super) fn started(&mut self, version: &str) {
        self.health.version = version.to_owned();
        self.health.state = EngineState::Ok;
        self.health.strikes = 0;
        self.pause_until = None;
        self.succeeded(verb::HELLO);
    }

    /// Records a successful call.
    pub(super) fn succeeded(&mut self, verb: &str) {
        self.failing.remove(verb);
        self.health.answered += u64::from(matches!(verb, verb::ASSEMBLE | verb::COMPACT));
    }

    /// Records a failure. Returns whether the engine no longer serves.
    pub(super) fn failed(
        &mut self,
        failure: &EngineError,
        call: FailedCall<'_>,
        context: FailureContext<'_>,
    ) -> bool {
        if failure.counts_as_strike() {
            self.health.strikes += 1;
            self.health.failures += 1;
            self.failing.insert(call.verb.to_owned());
        }
        self.health.last_error = Some(EngineFailure {
            verb: call.verb.to_owned(),
            name: Cow::Borrowed(failure.name()),
            message: failure.to_string(),
            at: call.at,
        });
        let is_down = context.is_lost || self.health.strikes >= STRIKES || failure.is_permanent();
        if !is_down {
            self.warn_of_failure(failure, call.verb, context);
            return false;
        }
        let comes_back =
            context.can_restart && !failure.is_permanent() && self.health.restarts < MAX_RESTARTS;
        let state = if comes_back { EngineState::Degraded } else { EngineState::Failed };
        let pause = FIRST_PAUSE * (1 << self.health.restarts.min(MAX_RESTARTS));
        self.pause_until = comes_back.then(|| context.now + pause);
        if std::mem::replace(&mut self.health.state, state) == state {
            self.warn_of_failure(failure, call.verb, context);
        } else {
            let until = match (comes_back, context.can_restart) {
                (true, _) => format!("for {pause:?}; then it is restarted"),
                (false, true) => "from now on".to_owned(),
                (false, false) => "until this program is restarted".to_owned(),
            };
            self.warn_of_end(failure, call.verb, context, &until);
        }
        true
    }

    /// Warns that the engine no longer serves.
    fn warn_of_end(
        &mut self,
        failure: &EngineError,
        verb: &str,
        context: FailureContext<'_>,
        until: &str,
    ) {
        let kind = FailureKind { verb: verb.to_owned(), name: failure.name() };
        let has = |warnings: &[Warning]| warnings.iter().any(|w| w.of == WarningSubject::Lease);
        let lost_lease = context.lost_lease || has(&self.warnings);
        // One warning reports the end, the lost lease and this failure.
        let part = WarningSubject::Failure(kind.clone());
        self.warnings.retain(|warning| warning.of != WarningSubject::Lease && warning.of != part);
        self.reported.insert(kind);
        let lease = if lost_lease { "; it no longer compacts this session" } else { "" };
        // A process that gave wrong answers is still running: the host ends it.
        let (failed, ended) = match (context.is_lost || failure.is_permanent(), context.can_restart)
        {
            (true, _) => ("failed".to_owned(), ""),
            (false, true) => (format!("failed {STRIKES} times, the last"), "it is ended, and "),
            (false, false) => {
                (format!("failed {STRIKES} times, the last"), "it is no longer used, and ")
            }
        };
        let serves = context.fallback.map_or("no engine serves", |_| "the default engine serves");
        self.warn(
            format!(
                "the context engine '{}' {failed}: {failure} (in '{verb}'); {ended}{serves} \
                 {until}{lease}{}",
                self.health.id,
                in_brackets(failure.hint()),
            ),
            WarningSubject::Other,
        );
    }

    /// Warns about the first failure of its kind after which the engine goes on. If failures are
    /// errors, the error reports it.
    fn warn_of_failure(&mut self, failure: &EngineError, verb: &str, context: FailureContext<'_>) {
        let kind = FailureKind { verb: verb.to_owned(), name: failure.name() };
        if context.lost_lease {
            self.reported.insert(kind);
            let text = format!(
                "the context engine '{}' no longer compacts this session: {failure}; the default \
                 engine does",
                self.health.id,
            );
            return self.warn(text, WarningSubject::Lease);
        }
        let Some(fallback) = context.fallback.filter(|_| !failure.is_cancelled()) else { return };
        let is_known =
            failure.is_misjudged() && std::mem::replace(&mut self.has_warned_of_estimate, true);
        if is_known || !self.reported.insert(kind.clone()) {
            return;
        }
        let served = match verb {
            verb::ASSEMBLE | verb::COMPACT | verb::HELLO => format!("; '{fallback}' served"),
            _ => String::new(),
        };
        let hint = in_brackets(failure.hint());
        let id = &self.health.id;
        let text =
            format!("the context engine '{id}' failed: {failure} (in '{verb}'){served}{hint}");
        self.warn(text, WarningSubject::Failure(kind));
    }

    /// Records a remark on an applied answer. Only the first one is reported.
    pub(super) fn remark(&mut self, remark: &EstimateOff) {
        if !std::mem::replace(&mut self.has_warned_of_estimate, true) {
            self.warn(
                format!("the context engine '{}': {remark}", self.health.id),
                WarningSubject::Other,
            );
        }
    }

    fn warn(&mut self, text: String, of: WarningSubject) {
        tracing::warn!(engine = %self.health.id, "{text}");
        self.warnings.push(Warning { text, of });
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        self.warnings.drain(..).map(|warning| warning.text).collect()
    }

    pub(super) fn why_unavailable(&self) -> String {
        match &self.health.last_error {
            Some(error) => format!("{}: {}", error.name, error.message),
            None => self.health.state.name().to_owned(),
        }
    }

    /// Returns the engine note of a turn's manifest, with the reason if another engine served it.
    pub(super) fn note(&self, reason: Option<String>) -> EngineNote {
        EngineNote { id: self.health.id.clone(), state: self.health.state, reason }
    }

    /// Returns its health; `fallback` is the engine that replaces it.
    pub(super) fn health(&self, fallback: Option<Cow<'static, str>>) -> EngineHealth {
        EngineHealth {
            failing: !self.failing.is_empty(),
            stand_in: fallback,
            ..self.health.clone()
        }
    }
}

/// Formats a hint for the end of a warning, which is one line.
fn in_brackets(hint: Option<String>) -> String {
    hint.map(|hint| format!(" ({})", hint.replace('\n', " | "))).unwrap_or_default()
}
