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
pub(super) mod script;
mod subagents;

use super::{Case, Level};

/// The default window of the sessions.
const WINDOW: u32 = 32_000;

macro_rules! cases {
    ($($level:ident $name:literal $run:path: $about:literal;)*) => {
        /// All cases.
        pub(super) static CASES: &[Case] = &[$(
            Case { name: $name, level: Level::$level, about: $about, run: $run },
        )*];
    };
}

// `memory` runs early: memory freed by other cases would hide a leak of the engine.
cases! {
    Core "hello" lifecycle::hello: "reports its info, always the same";
    Core "lifecycle" lifecycle::lifecycle: "survives every verb, and works without the optional ones";
    Core "memory" growth::memory: "1,000 turns in bounded memory";
    Core "empty-session" odd::empty: "answers for a session without messages";
    Core "ingest-twice" lifecycle::ingest_twice: "a message that is sent twice exists once";
    Core "answers-fit" budget::answers_fit: "answers fit small and large windows";
    Core "pairs" keep::pairs: "a tool call and its results stay together, or go together";
    Core "must-stay" keep::must_stay: "system prompt, pinned and newest messages are never dropped";
    Core "unicode" odd::unicode: "text in any script is unchanged";
    Core "huge-message" odd::huge: "one message larger than the window";
    Core "stable" keep::stable: "repeated calls give the same answer: the prompt cache holds";
    Core "two-sessions" lifecycle::two_sessions: "sessions do not mix";
    Core "answer-rejected" calls::rejected: "continues when an answer was rejected";
    Core "cancel" calls::cancel: "continues when a call was cancelled";
    Core "deadline" calls::deadline: "answers when the model never does";
    Core "token-honesty" honesty::honesty: "reports the correct size of its answers";
    Core "long-session" growth::long_session: "10,000 messages, at once and turn by turn";
    Full "restart" durable::restart: "a second instance continues where the first one stopped";
    Full "commit-turn" durable::commit_turn: "a turn that is committed twice counts once";
    Full "compaction" compaction::compaction: "makes a session permanently smaller";
    Full "compact-deeper" compaction::deeper: "the second and third attempt cut deeper";
    Full "compact-nothing" compaction::nothing: "reports when there is nothing to compact";
    Full "subagents" subagents::subagents: "prepares, rolls back and ends them, unknown ones too";
}
