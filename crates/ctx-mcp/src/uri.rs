//! `ctx://session/KEY` and `ctx://session/KEY/FROM`.

use ctx_core::{Error, ErrorKind, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const PREFIX: &str = "ctx://session/";

/// The URI template of a session from a message on.
pub(super) const TEMPLATE: &str = "ctx://session/{key}/{from}";

/// The characters that are encoded in a key: all but letters, digits and `-._~:`.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// A part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionPart {
    pub(super) key: String,
    /// The first message to read.
    pub(super) from: usize,
}

impl SessionPart {
    pub(super) fn parse(uri: &str) -> Result<Self> {
        let unknown = || {
            Error::new(ErrorKind::NotFound, "unknown resource")
                .with("uri", ctx_core::text::clip(uri, 200))
                .hint(format!(
                    "resources are {PREFIX}KEY and {TEMPLATE}; `resources/list` lists them"
                ))
        };
        let rest = uri.strip_prefix(PREFIX).ok_or_else(unknown)?;
        let (key, from) = match rest.split_once('/') {
            Some((key, from)) => (key, from.parse().map_err(|_| unknown())?),
            None => (rest, 0),
        };
        let key = percent_decode_str(key).decode_utf8().map_err(|_| unknown())?.into_owned();
        if key.is_empty() { Err(unknown()) } else { Ok(Self { key, from }) }
    }

    /// Returns the URI of a session from its beginning.
    pub(super) fn whole(key: &str) -> String {
        format!("{PREFIX}{}", utf8_percent_encode(key, ENCODED))
    }

    /// Returns the URI of a session from a message on.
    pub(super) fn later(key: &str, from: usize) -> String {
        format!("{}/{from}", Self::whole(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_parsed_back_to_its_session() {
        for key in ["agent:main:main", "a/b c", "../../etc/passwd", "агент:%2e", "?#"] {
            let part = |from| SessionPart { key: key.to_owned(), from };
            assert_eq!(SessionPart::parse(&SessionPart::whole(key)).unwrap(), part(0), "{key}");
            assert_eq!(SessionPart::parse(&SessionPart::later(key, 7)).unwrap(), part(7), "{key}");
        }
        assert_eq!(SessionPart::whole("agent:main:main"), "ctx://session/agent:main:main");
    }

    #[test]
    fn an_invalid_uri_is_refused_with_a_hint() {
        let long = format!("ctx://other/{}", "x".repeat(100_000));
        let bad = [
            "",
            "ctx://session/",
            "ctx://session",
            "file:///etc/passwd",
            "ctx://session/a/b",
            "ctx://session/a/-1",
            "ctx://session/a/1/2",
            "ctx://session/%ff",
            &long,
        ];
        for uri in bad {
            let error = SessionPart::parse(uri).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{uri:.40}");
            assert!(error.hint_text().unwrap().contains("resources/list"), "{uri:.40}");
            assert!(error.to_string().len() < 1_000);
        }
    }
}
