//! Finds secrets in text, and replaces each by a marker.
//!
//! Three kinds of secrets are found, in time linear in the length of the text:
//!
//! - forms: the format of a provider's key, the value after `Authorization:`, the password before
//!   the `@` of a URL, a key between `BEGIN PRIVATE KEY` and its end (`patterns.toml`);
//! - names: `name = value` where the name indicates a secret, in JSON, YAML, `.env` files, shells,
//!   headers and common programming languages (`words.toml`);
//! - entropy: long words that mix letters and digits at random, unless the context shows that they
//!   are something else, such as a digest or a file.
//!
//! A secret is replaced by a marker, `[redacted:github-token]`. Redaction is deterministic, and
//! redacting a text again does not change it. A password in a sentence ("the password is
//! swordfish") is out of scope, because it cannot be distinguished from any other word.

#![forbid(unsafe_code)]

mod check;
mod entropy;
mod name;
mod pem;
mod span;
mod table;
mod value;

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::span::{Breaks, By, Spans};
use crate::table::{Anchor, Table};

/// The maximum number of repeated passes over a text. One or two are enough except for adversarial
/// texts.
const MOST_PASSES: usize = 8;

/// Redacts secrets in text.
///
/// ```
/// use ctx_redact::Redactor;
///
/// let redacted = Redactor::builtin().redact("DB_PASSWORD=tr0ub4dor&3 # for staging");
/// assert_eq!(redacted.text, "DB_PASSWORD=[redacted:password] # for staging");
/// assert_eq!(redacted.found, 1);
/// ```
#[derive(Debug)]
pub struct Redactor {
    table: Table,
}

/// A redacted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text; borrowed if nothing was redacted.
    pub text: Cow<'a, str>,
    /// The number of secrets redacted.
    pub found: usize,
}

impl Redactor {
    /// Returns the redactor with the built-in patterns.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Redactor> = LazyLock::new(|| Redactor { table: Table::builtin() });
        &BUILTIN
    }

    /// Replaces each secret by a marker.
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        self.passes(text, Breaks::Removed)
    }

    /// Like [`redact`](Self::redact), but preserves the number of lines: the line breaks of a
    /// multi-line secret follow its marker.
    pub fn redact_lines<'a>(&self, text: &'a str) -> Redacted<'a> {
        self.passes(text, Breaks::Kept)
    }

    fn passes<'a>(&self, text: &'a str, breaks: Breaks) -> Redacted<'a> {
        let mut redacted = self.once(text, breaks);
        // Text next to a secret may be a secret too, so the text with markers is scanned again.
        for _ in 0..MOST_PASSES {
            if redacted.found == 0 {
                break;
            }
            let more = self.once(&redacted.text, breaks);
            if more.found == 0 {
                break;
            }
            let found = redacted.found + more.found;
            redacted = Redacted { text: Cow::Owned(more.text.into_owned()), found };
        }
        redacted
    }

    fn once<'a>(&self, text: &'a str, breaks: Breaks) -> Redacted<'a> {
        let mut spans = self.known(text);
        entropy::find(text, &self.table, &mut spans);
        spans.apply(text, breaks)
    }

    /// Finds secrets by form or name.
    fn known<'t>(&'t self, text: &str) -> Spans<'t> {
        let mut spans = Spans::default();
        // Names are read whole: `access_token` contains three anchors and is one name.
        let mut named = 0;
        let words = &self.table.words;
        for hit in self.table.hits(text) {
            match hit.anchor {
                Anchor::Rows(rows) => {
                    // A pattern may match inside an earlier match, so only text after the last
                    // match is searched.
                    if hit.start < spans.formed() {
                        continue;
                    }
                    for row in rows {
                        if let Some(secret) = self.table.row(*row).find(text, &hit, words) {
                            spans.secret(secret, By::Form, self.table.row(*row).name());
                            break;
                        }
                    }
                }
                Anchor::Name => {
                    if hit.start < named {
                        continue;
                    }
                    if let Some(name) = name::read(text, &(hit.start..hit.end), words) {
                        named = name.end;
                        if let Some(value) = value::read(text, &name) {
                            if value.is_run() {
                                named = value.end;
                            }
                            match name.kind {
                                Some(kind) if check::is_secret(kind, text, &value, words) => {
                                    spans.secret(value.range(), By::Name, kind.marker());
                                }
                                None if name.harmless => spans.public(value.range()),
                                _ => {}
                            }
                        }
                    }
                }
                Anchor::Block => pem::read(text, hit.start, &mut spans),
            }
        }
        spans.sort();
        spans
    }
}

#[cfg(test)]
mod tests;
