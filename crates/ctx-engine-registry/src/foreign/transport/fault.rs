//! The ways in which a foreign engine can fail to answer.

use std::time::Duration;

use ctx_core::text::clip;
use ctx_core::{Error, ErrorKind};
use ctx_engine_sdk::frame::MARK;
use ctx_engine_sdk::protocol;

/// Maximum length of texts kept from an engine, in characters.
const MAX_TEXT_CHARS: usize = 2_000;

/// Describes the end of a process whose last line is unfinished.
const UNFINISHED: &str = "after a line without a line end";

/// Describes the end of a process whose last message in MessagePack is unfinished.
const INCOMPLETE: &str = "after a part of a message";

/// Why a call to a foreign engine has no answer. Texts of the engine are untrusted: they are
/// truncated and stripped of control characters here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The engine could not be loaded or run.
    #[error("the engine could not be started: {0}")]
    Unopened(Box<Error>),
    /// The process ended.
    #[error("the engine's process ended ({status})")]
    Crashed {
        /// Its exit status as a text, and the beginning of its last line if that has no line end.
        status: String,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// The process closed its stdin or stdout and kept running. It was killed.
    #[error("the engine closed its standard {what} without ending")]
    Closed {
        /// `input` or `output`.
        what: &'static str,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// The engine did not answer in time. A process was killed, unless it reacted to the cancel; a
    /// library that kept running was abandoned.
    #[error("the engine did not answer '{verb}' within {after:?}")]
    Deadline {
        /// The verb.
        verb: String,
        /// The deadline.
        after: Duration,
        /// The last lines of a killed process's stderr.
        stderr: Vec<String>,
    },
    /// The engine worked on other calls until the deadline of this call. Not the engine's fault.
    #[error("'{verb}' waited {after:?} for the engine, which was busy with other calls")]
    Busy {
        /// The verb.
        verb: String,
        /// How long it waited.
        after: Duration,
    },
    /// The answer exceeded the maximum size.
    #[error("the engine's answer is larger than {limit} bytes")]
    TooLarge {
        /// The maximum, in bytes.
        limit: usize,
    },
    /// The message does not follow the protocol.
    #[error("the engine broke the protocol: {why}{}", output(excerpt))]
    Garbage {
        /// What is wrong with it.
        why: String,
        /// Its beginning.
        excerpt: String,
    },
    /// The engine panicked.
    #[error("the engine panicked: {message}")]
    Panicked {
        /// The panic message.
        message: String,
    },
    /// The engine answered with an error.
    #[error("the engine refused: {}", .0.message)]
    Refused(protocol::Error),
    /// The engine was lost in an earlier fault.
    #[error("the engine is gone: {why}")]
    Lost {
        /// The earlier fault.
        why: String,
    },
}

impl Fault {
    /// Returns a stable name, for programs and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unopened(_) => "unopened",
            Self::Crashed { .. } => "crashed",
            Self::Closed { .. } => "closed",
            Self::Deadline { .. } => "deadline",
            Self::Busy { .. } => "busy",
            Self::TooLarge { .. } => "too-large",
            Self::Garbage { .. } => "garbage",
            Self::Panicked { .. } => "panicked",
            Self::Refused(_) => "refused",
            Self::Lost { .. } => "lost",
        }
    }

    pub(super) fn garbage(why: impl Into<String>, bytes: &[u8]) -> Self {
        let beginning = &bytes[..bytes.len().min(400)];
        Self::Garbage { why: why.into(), excerpt: tidy(&String::from_utf8_lossy(beginning), 100) }
    }

    /// Returns the fault of a process that ended, perhaps in the middle of a message.
    pub(super) fn crashed(status: String, unfinished: &[u8], stderr: Vec<String>) -> Self {
        if unfinished.is_empty() {
            return Self::Crashed { status, stderr };
        }
        if unfinished.first() == Some(&MARK) {
            return Self::Crashed { status: format!("{status}, {INCOMPLETE}"), stderr };
        }
        let beginning = &unfinished[..unfinished.len().min(400)];
        let beginning = tidy(&String::from_utf8_lossy(beginning), 100);
        let status = format!("{status}, {UNFINISHED}: {beginning}");
        Self::Crashed { status, stderr }
    }

    /// Returns the fault of an engine that answered with an error.
    pub(super) fn refused(error: protocol::Error) -> Self {
        let message = tidy(&error.message, MAX_TEXT_CHARS);
        match error.kind {
            protocol::ErrorKind::Panic => Self::Panicked { message },
            kind => {
                let hint = error.hint.map(|hint| tidy(&hint, MAX_TEXT_CHARS));
                Self::Refused(protocol::Error { kind, message, hint })
            }
        }
    }

    /// Returns a hint for the user; empty if there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::Unopened(error) => error.hint_text().unwrap_or_default().to_owned(),
            Self::Crashed { status, .. } if status.contains(UNFINISHED) => {
                "an answer ends with a line feed, written and flushed before the process ends"
                    .into()
            }
            Self::Closed { stderr, .. } if stderr.is_empty() => {
                "an engine keeps its standard input and output open until its input ends".into()
            }
            Self::Crashed { stderr, .. } if stderr.is_empty() => {
                "it wrote nothing to stderr; run its command manually to see what happens".into()
            }
            Self::Deadline { stderr, .. } if stderr.is_empty() => {
                "increase plugins.engines.<id>.deadlinesMs, or use another engine".into()
            }
            Self::Crashed { stderr, .. }
            | Self::Closed { stderr, .. }
            | Self::Deadline { stderr, .. } => {
                format!("its last lines on stderr:\n{}", stderr.join("\n"))
            }
            Self::Busy { .. } => "use fewer concurrent sessions, or a faster engine".into(),
            Self::TooLarge { .. } => {
                "an engine should answer with a plan: the ids of rows, not their contents".into()
            }
            Self::Garbage { .. } => {
                "the engine must print one JSON object per line to stdout and nothing else; \
                 messages for people go to stderr"
                    .into()
            }
            Self::Panicked { .. } => "this is a bug of the engine: report it to its author".into(),
            Self::Refused(error) => error.hint.clone().unwrap_or_default(),
            Self::Lost { .. } => "it must be restarted".into(),
        }
    }
}

fn output(excerpt: &str) -> String {
    if excerpt.is_empty() { String::new() } else { format!("; output: {excerpt}") }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Unopened(Box::new(error))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        if let Fault::Unopened(error) = fault {
            return *error;
        }
        let kind = match &fault {
            Fault::Deadline { .. } | Fault::Busy { .. } => ErrorKind::Timeout,
            Fault::Refused(error) => match error.kind {
                protocol::ErrorKind::Cancelled => ErrorKind::Cancelled,
                protocol::ErrorKind::Unsupported => ErrorKind::Capability,
                _ => ErrorKind::Contract,
            },
            _ => ErrorKind::Contract,
        };
        let error = Self::new(kind, fault.to_string());
        match fault.hint() {
            hint if hint.is_empty() => error,
            hint => error.hint(hint),
        }
    }
}

/// Truncates to `limit` characters and removes control characters.
pub(super) fn tidy(text: &str, limit: usize) -> String {
    let is_harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    clip(text, limit).replace(is_harmful, "\u{fffd}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_an_engine_are_truncated_and_escaped() {
        assert_eq!(tidy("a\u{1b}[2Jb\tc\n", 100), "a\u{fffd}[2Jb\tc");
        assert_eq!(tidy("äöüß", 3), "äöü…");
        assert_eq!(tidy("äöü", 3), "äöü");
    }

    #[test]
    fn an_error_has_a_message_and_a_hint() {
        let stderr = vec!["Traceback".to_owned(), "KeyError".to_owned()];
        let error = Error::from(Fault::Crashed { status: "exit status: 1".into(), stderr });
        assert_eq!(error.kind(), ErrorKind::Contract);
        assert_eq!(error.to_string(), "the engine's process ended (exit status: 1)");
        assert!(error.hint_text().is_some_and(|hint| hint.ends_with("Traceback\nKeyError")));
        let after = Duration::from_millis(1500);
        let late = Fault::Deadline { verb: "compact".into(), after, stderr: Vec::new() };
        let error = Error::from(late);
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(error.to_string(), "the engine did not answer 'compact' within 1.5s");
    }

    #[test]
    fn an_answered_panic_is_distinguished_from_a_refusal() {
        let error = protocol::Error::new(protocol::ErrorKind::Panic, "index out of bounds");
        assert_eq!(Fault::refused(error).name(), "panicked");
        assert_eq!(Fault::refused(protocol::Error::failed("no")).name(), "refused");
    }
}
