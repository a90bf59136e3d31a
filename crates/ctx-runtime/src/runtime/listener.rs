//! What a host hears of a turn while it runs.

use ctx_core::{CompactionTrigger, Tokens, ToolCall, ToolOutput};

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NoticeKind {
    /// Another model answers than the one asked first.
    Failover,
    /// A request is made again.
    Retry,
    /// The model's window is small.
    Window,
    /// The provider refused the request as too long.
    Overflow,
    /// A compaction did not do what it should.
    Compaction,
    /// The memory flush did not do what it should.
    Flush,
    /// The tool loop was stopped.
    ToolLoop,
    /// The answer was cut off.
    CutOff,
    /// The session was mended when it was opened.
    Session,
    /// An engine, a layer or a memory has something to say.
    Engine,
}

impl NoticeKind {
    /// The stable name that other programs match on.
    #[must_use]
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

/// Something a person should be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// It, in words.
    pub words: String,
}

/// Something that happens in a turn.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// More of the answer's text, without `NO_REPLY`.
    Text(&'a str),
    /// More of the model's reasoning.
    Thinking(&'a str),
    /// What came of this answer so far counts for nothing: it is asked for again.
    Restarted,
    /// A tool is about to run.
    ToolBegan(&'a ToolCall),
    /// It gave this back.
    ToolEnded(&'a ToolCall, &'a ToolOutput),
    /// A person should be told something.
    Notice(&'a Notice),
    /// The session is being compacted.
    CompactionBegan {
        /// Why.
        trigger: CompactionTrigger,
        /// What the next request would measure.
        tokens: Tokens,
    },
    /// It is over.
    CompactionEnded {
        /// Whether anything was compacted.
        compacted: bool,
        /// What the request measured.
        before: Tokens,
        /// What it measures now.
        after: Tokens,
        /// How many compactions this session has had.
        count: u64,
    },
}

/// Hears what happens in a turn.
pub trait Listener: Send {
    /// Something happened.
    fn on(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>) + Send> Listener for F {
    fn on(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// Hears nothing. What it was told of in notices is in the outcome all the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Listener for Deaf {
    fn on(&mut self, _: Event<'_>) {}
}
