//! The sessions of ctx: pi's version 3 with a mark in the header. Such a file is read like pi's
//! sessions, see [`Transcript::is_ctx_session`](crate::Transcript::is_ctx_session).

use super::{Agent, AgentSpec, Format, FormatSpec, Target, pi};

impl Format {
    /// A ctx session, to which ctx may append. Only conversions use this format, as a target; the
    /// file is read as [`Format::PI`].
    pub const CTX: Self = Self(&FormatSpec {
        name: "ctx",
        target: Some(Target::Session { overlay: true }),
        agents: &[Agent::CTX],
        note_beginning: pi::note_beginning,
        last_usage: pi::last_usage,
        ..FormatSpec::NONE
    });
}

impl Agent {
    /// ctx itself.
    pub const CTX: Self = Self(&AgentSpec {
        name: "ctx",
        layouts: &[&["*", "sessions", "*.jsonl"]],
        ..AgentSpec::NONE
    });
}
