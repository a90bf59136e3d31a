//! The words of a key. Each type accepts only words that are valid in its position, so that every
//! constructed key parses back, and a word used as a file name cannot leave its folder.

use std::fmt;
use std::str::FromStr;

use ctx_core::text::head_chars;
use ctx_core::{Error, ErrorKind, Result};
use serde::Serialize;
use serde_with::DeserializeFromStr;

/// The maximum length of a key.
pub const MAX_KEY_BYTES: usize = 1024;

/// The maximum length of a word in a file name. Two of them, `-topic-` and the suffixes of this
/// crate stay under the 255 bytes that file systems allow.
const MAX_FILE_ID_BYTES: usize = 100;

/// The maximum length of a word that is not used in file names.
const MAX_PART_BYTES: usize = 512;

/// Words that define the shape of a key, so they cannot be names.
const RESERVED: [&str; 12] = [
    "agent", "direct", "group", "channel", "room", "subagent", "cron", "run", "thread", "topic",
    "acp", "explicit",
];

/// A word that becomes a folder or part of a file name: an agent id, a session id, a thread id, a
/// blob's name. No separators, no `..`, no leading dot, no control characters, at most 100 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, DeserializeFromStr)]
pub struct FileId(String);

/// A word of a key that is not an id: a channel, an account, a main key, a job. It contains no `:`
/// and is not a reserved word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, DeserializeFromStr)]
pub struct Name(String);

/// An id assigned by a channel. It may contain `:` (as Matrix rooms do) and `/` (as Signal groups
/// do): it is never used as a file name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, DeserializeFromStr)]
pub struct PeerId(String);

impl FileId {
    /// Validates `text` for use in a file name.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check(&text, MAX_FILE_ID_BYTES)?;
        if text.contains(['/', '\\', ':']) {
            return Err(refuse(
                &text,
                "it becomes a file name, so it cannot contain '/', '\\' or ':'",
            ));
        }
        if text.starts_with('.') || text.contains("..") {
            return Err(refuse(
                &text,
                "it becomes a file name, so it cannot begin with '.' or contain '..'",
            ));
        }
        Ok(Self(text))
    }

    /// Returns the default agent, to which sessions without an agent belong.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl Name {
    /// Validates `text` for use as one word of a key.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check(&text, MAX_PART_BYTES)?;
        if text.contains(':') {
            return Err(refuse(&text, "':' separates the parts of a key"));
        }
        if RESERVED.contains(&text.as_str()) {
            return Err(refuse(&text, "this word is reserved in session keys"));
        }
        Ok(Self(text))
    }

    /// Returns the default main key.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl PeerId {
    /// Validates `text` for use as an id.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        check(&text, MAX_PART_BYTES)?;
        let mut parts: Vec<&str> = text.split(':').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(refuse(&text, "a part between two ':' is empty"));
        }
        parts.pop();
        if matches!(parts.last(), Some(&("thread" | "topic"))) {
            return Err(refuse(&text, "it must not end like a thread or topic suffix"));
        }
        Ok(Self(text))
    }
}

fn check(text: &str, most: usize) -> Result<()> {
    if text.is_empty() {
        return Err(refuse(text, "a part is empty"));
    }
    if text.len() > most {
        let start = head_chars(text, 24);
        return Err(refuse(&format!("{start}..."), "a part is too long").with("bytes", text.len()));
    }
    if text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err(refuse(&text.escape_debug().to_string(), "it contains a control character"));
    }
    if text.trim() != text {
        return Err(refuse(text, "it begins or ends with white space"));
    }
    Ok(())
}

/// Whether a character is invisible, or reorders others when the key is shown.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn refuse(text: &str, why: &'static str) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
        .with("part", format!("'{text}'"))
        .hint("parts of a session key are plain names, without ':', '/' or control characters")
}

macro_rules! text_type {
    ($name:ident) => {
        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }
    };
}

text_type!(FileId);
text_type!(Name);
text_type!(PeerId);
