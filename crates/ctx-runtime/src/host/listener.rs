//! The events that a host receives during a turn.

use ctx_core::{CompactionTrigger, Tokens, ToolCall, ToolOutput};

/// The subject of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NoticeKind {
    /// A fallback model answers.
    Failover,
    /// A request is retried.
    Retry,
    /// The model's window is small.
    Window,
    /// The provider rejected the request as too long.
    Overflow,
    /// A compaction failed or was incomplete.
    Compaction,
    /// The memory flush failed or was incomplete.
    Flush,
    /// The tool loop was stopped.
    ToolLoop,
    /// The answer was cut off.
    CutOff,
    /// The session was repaired when it was opened.
    Session,
    /// A notice of an engine, a layer or a memory.
    Engine,
}

impl NoticeKind {
    /// Returns the stable name for other programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failover => "failover",
            Self::Retry => "retry",
            Self::Window => "window",
            Self::Overflow => "overflow",
            Self::Compaction => "compaction",
            Self::Flush => "flush",
            Self::ToolLoop => "toolLoop",
            Self::CutOff => "cutOff",
            Self::Session => "session",
            Self::Engine => "engine",
        }
    }
}

/// A notice for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its subject.
    pub kind: NoticeKind,
    /// Its text.
    pub text: String,
}

/// An event of a turn.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// More of the answer's text, without the word `NO_REPLY`, which marks a silent answer.
    Text(&'a str),
    /// More of the model's reasoning.
    Thinking(&'a str),
    /// The answer so far is discarded: the request is repeated.
    Restarted,
    /// A tool is about to run.
    ToolBegan(&'a ToolCall),
    /// A tool returned this output.
    ToolEnded(&'a ToolCall, &'a ToolOutput),
    /// A notice for the user.
    Notice(&'a Notice),
    /// A compaction of the session started.
    CompactionBegan {
        /// What triggered it.
        trigger: CompactionTrigger,
        /// The size of the next request.
        tokens: Tokens,
    },
    /// The compaction ended.
    CompactionEnded {
        /// Whether anything was compacted.
        compacted: bool,
        /// The size of the request before.
        before: Tokens,
        /// The size of the request after.
        after: Tokens,
        /// Number of compactions of this session so far.
        count: u64,
    },
}

/// Receives the events of a turn.
pub trait Listener: Send {
    /// Called for each event.
    fn on(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>) + Send> Listener for F {
    fn on(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Ignores all events. Notices are still part of the outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl Listener for NoListener {
    fn on(&mut self, _: Event<'_>) {}
}
