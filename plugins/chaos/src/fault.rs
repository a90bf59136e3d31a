//! The faults, and the call at which one occurs.

use std::collections::HashMap;

use ctx_engine_sdk::protocol::verb;
use ctx_engine_sdk::{Error, Result};
use serde::Deserialize;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Panics.
    Panic,
    /// Ends the program with a signal.
    Abort,
    /// Accesses unmapped memory.
    Segfault,
    /// Ends the program.
    Exit,
    /// Never answers.
    Hang,
    /// Answers after [`Orders::ms`], or soon after a cancel.
    Slow,
    /// Leaks [`Orders::bytes`] at each call.
    Leak,
    /// Reports an estimate of one token.
    LieAboutTokens,
    /// Drops system messages.
    DropSystemPrompt,
    /// Drops rows that must stay.
    DropPinned,
    /// Drops a tool call and keeps its results.
    SplitPair,
    /// Answers with [`Orders::bytes`].
    HugeAnswer,
    /// Answers with bytes that are not JSON.
    Garbage,
    /// Never answers `hello`.
    NeverHello,
    /// Answers with the id of another call.
    WrongId,
    /// Drops a row that does not exist.
    UnknownRow,
    /// Answers with an invalid message.
    BadMessage,
    /// Inserts twice as many words as the window has tokens.
    TooBig,
    /// Reports a compaction, but keeps everything.
    CompactNothing,
    /// Compacts up to an entry that does not exist.
    CompactUnknownEntry,
    /// Claims not to know the session.
    Forget,
    /// Prints to stdout, which is reserved for answers.
    StdoutNoise,
}

impl Fault {
    /// Returns the default verb of the fault.
    fn verb(self) -> &'static str {
        match self {
            Self::NeverHello => verb::HELLO,
            Self::CompactNothing | Self::CompactUnknownEntry => verb::COMPACT,
            _ => verb::ASSEMBLE,
        }
    }
}

/// `plugins.engines.chaos.config`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Orders {
    /// The fault. Without a value, no fault occurs.
    pub fault: Option<Fault>,
    /// The verb at which it occurs. Default: the verb to which the fault belongs, or `assemble`.
    pub at: Option<String>,
    /// Number of successful calls of that verb before it. Default 0.
    pub after: u64,
    /// The size of [`Fault::HugeAnswer`] and [`Fault::Leak`]. Default 100 MB.
    pub bytes: usize,
    /// The duration of [`Fault::Slow`]. Default 2000.
    pub ms: u64,
    /// Whether `assemble` returns all messages in full if no fault occurs, to measure the cost.
    /// Default: no.
    pub whole: bool,
}

impl Default for Orders {
    fn default() -> Self {
        Self { fault: None, at: None, after: 0, bytes: 100_000_000, ms: 2_000, whole: false }
    }
}

impl Orders {
    /// Parses a configuration.
    ///
    /// # Errors
    ///
    /// An error if it is invalid.
    pub fn read(json: &serde_json::Value) -> Result<Self> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let orders = Self::deserialize(json)
            .map_err(|error| Error::failed(format!("invalid configuration of chaos: {error}")))?;
        match &orders.at {
            Some(at) if !verb::ALL.contains(&at.as_str()) => {
                Err(Error::failed(format!("unknown verb '{at}' in 'at'"))
                    .hint(format!("known verbs: {}", verb::ALL.join(", "))))
            }
            _ => Ok(orders),
        }
    }
}

/// Counts calls, and decides when the fault occurs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mischief {
    pub(crate) orders: Orders,
    calls: HashMap<String, u64>,
}

impl Mischief {
    pub(crate) fn new(orders: Orders) -> Self {
        Self { orders, calls: HashMap::new() }
    }

    /// Returns the fault, if it is due at this call.
    pub(crate) fn strikes(&mut self, verb: &str) -> Option<Fault> {
        let fault = self.orders.fault?;
        if verb != self.orders.at.as_deref().unwrap_or(fault.verb()) {
            return None;
        }
        let calls = self.calls.entry(verb.to_owned()).or_default();
        *calls += 1;
        (*calls > self.orders.after).then_some(fault)
    }
}
