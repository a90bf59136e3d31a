//! The cases, in the order they run.

mod budget;
mod calls;
mod compaction;
mod durable;
mod growth;
mod honesty;
mod keep;
mod lifecycle;
mod odd;
mod script;
mod subagents;

use super::{Case, Level};

/// Windows that sessions are fitted to.
const WINDOW: u32 = 32_000;

macro_rules! cases {
    ($($level:ident $name:literal $run:path: $about:literal;)*) => {
        /// All of them.
        pub(super) static CASES: &[Case] = &[$(
            Case { name: $name, level: Level::$level, about: $about, run: $run },
        )*];
    };
}

// `memory` comes early: what other cases freed would hide what an engine keeps.
cases! {
    Core "hello" lifecycle::hello: "says who it is, always the same";
    Core "lifecycle" lifecycle::lifecycle: "lives through every verb, and without the optional ones";
    Core "memory" growth::memory: "1,000 turns in bounded memory";
    Core "empty-session" odd::empty: "answers where nothing was said yet";
    Core "ingest-twice" lifecycle::ingest_twice: "a message that is told twice is there once";
    Core "answers-fit" budget::answers_fit: "answers fit small and large windows";
    Core "pairs" keep::pairs: "a tool call and its results stay together, or go together";
    Core "must-stay" keep::must_stay: "system prompt, pinned and newest messages are never left out";
    Core "unicode" odd::unicode: "text in any script comes back as it was";
    Core "huge-message" odd::huge: "one message larger than the window";
    Core "stable" keep::stable: "asked again, it answers the same: the prompt cache holds";
    Core "two-sessions" lifecycle::two_sessions: "sessions do not mix";
    Core "answer-rejected" calls::rejected: "goes on when an answer was not used";
    Core "cancel" calls::cancel: "goes on when a call was given up";
    Core "deadline" calls::deadline: "answers when the model it asks never does";
    Core "token-honesty" honesty::honesty: "says what its answers measure";
    Core "long-session" growth::long_session: "10,000 messages, at once and turn by turn";
    Full "restart" durable::restart: "a second instance goes on where the first one was";
    Full "commit-turn" durable::commit_turn: "a turn that is committed twice counts once";
    Full "compaction" compaction::compaction: "makes a session smaller for good";
    Full "compact-deeper" compaction::deeper: "the second and third attempt cut deeper";
    Full "compact-nothing" compaction::nothing: "says so where there is nothing to compact";
    Full "subagents" subagents::subagents: "prepares, rolls back and ends them, unknown ones too";
}
