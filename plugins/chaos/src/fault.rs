//! The faults, and when one strikes.

use std::collections::HashMap;

use ctx_engine_sdk::protocol::verb;
use ctx_engine_sdk::{Error, Result};
use serde::Deserialize;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Panics.
    Panic,
    /// Ends the program with a signal.
    Abort,
    /// Touches memory that is not there.
    Segfault,
    /// Ends the program.
    Exit,
    /// Never answers.
    Hang,
    /// Answers after [`Orders::ms`], or soon after a cancel.
    Slow,
    /// Keeps [`Orders::bytes`] more with each call.
    Leak,
    /// Says that what it answers measures one token.
    LieAboutTokens,
    /// Drops system messages.
    DropSystemPrompt,
    /// Drops what must stay.
    DropPinned,
    /// Drops a tool call and keeps its results.
    SplitPair,
    /// Answers with [`Orders::bytes`].
    HugeAnswer,
    /// Answers with bytes that are no JSON.
    Garbage,
    /// Never answers `hello`.
    NeverHello,
    /// Answers another call.
    WrongId,
    /// Drops a row that does not exist.
    UnknownRow,
    /// Answers with a message that is none.
    BadMessage,
    /// Adds twice of what fits.
    TooBig,
    /// Says that it compacted, and keeps everything.
    CompactNothing,
    /// Compacts up to an entry that does not exist.
    CompactUnknownEntry,
    /// Knows nothing of the session, whatever it is told.
    Forget,
    /// Prints to stdout, where only answers belong.
    StdoutNoise,
}

impl Fault {
    /// The verb it strikes at where the orders name none.
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
    /// What goes wrong; nothing where absent.
    pub fault: Option<Fault>,
    /// The verb at which it does. Default: `assemble`, or where the fault belongs.
    pub at: Option<String>,
    /// How many calls of that verb go well first. Default 0.
    pub after: u64,
    /// For [`Fault::HugeAnswer`] and [`Fault::Leak`]. Default 100 MB.
    pub bytes: usize,
    /// For [`Fault::Slow`]. Default 2000.
    pub ms: u64,
    /// Whether it answers with all messages in full where nothing goes wrong, for measuring what that
    /// costs. Default: no.
    pub whole: bool,
}

impl Default for Orders {
    fn default() -> Self {
        Self { fault: None, at: None, after: 0, bytes: 100_000_000, ms: 2_000, whole: false }
    }
}

impl Orders {
    /// Reads a configuration.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn read(json: &serde_json::Value) -> Result<Self> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let orders = Self::deserialize(json)
            .map_err(|error| Error::failed(format!("the configuration of chaos: {error}")))?;
        match &orders.at {
            Some(at) if !verb::ALL.contains(&at.as_str()) => {
                Err(Error::failed(format!("'at': there is no verb '{at}'"))
                    .hint(format!("one of {}", verb::ALL.join(", "))))
            }
            _ => Ok(orders),
        }
    }
}

/// Counts calls, and says when the fault strikes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mischief {
    pub(crate) orders: Orders,
    calls: HashMap<String, u64>,
}

impl Mischief {
    pub(crate) fn new(orders: Orders) -> Self {
        Self { orders, calls: HashMap::new() }
    }

    /// The fault, if it strikes at this call.
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
