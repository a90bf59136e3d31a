//! Secrets are taken out before anything reaches the disk.
//!
//! Three things are looked for, in time linear in the text:
//!
//! - forms: what a provider's key looks like, what stands after `Authorization:`, before the `@` of
//!   a URL, between `BEGIN PRIVATE KEY` and its end (`patterns.toml`);
//! - names: `name = value` where the name says that its value is a secret, in JSON, YAML, `.env`
//!   files, shells, headers and the languages people write (`words.toml`);
//! - looks: long words of mixed letters and digits that nothing explains.
//!
//! What is found becomes a marker, `[redacted:github-token]`, the same everywhere; a text that was
//! redacted stays as it is. A password in a sentence ("the password is swordfish") is out of scope:
//! nothing tells it from any other word.

mod block;
mod judge;
mod key;
mod looks;
mod span;
mod table;
mod value;

use std::borrow::Cow;
use std::sync::LazyLock;

pub(crate) use self::span::floor;
use self::span::{Breaks, By, Spans};
use self::table::{Anchor, Table};

/// How often a text is looked at again. A second time is enough but for what was made to resist.
const MOST_PASSES: usize = 8;

/// Takes secrets out of text.
///
/// ```
/// use ctx_memory::Redactor;
///
/// let redacted = Redactor::builtin().redact("DB_PASSWORD=tr0ub4dor&3 # for staging");
/// assert_eq!(redacted.text, "DB_PASSWORD=[redacted:password] # for staging");
/// assert_eq!(redacted.found, 1);
/// ```
#[derive(Debug)]
pub struct Redactor {
    table: Table,
}

/// A text without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text; borrowed where there was nothing to take out.
    pub text: Cow<'a, str>,
    /// How many secrets were taken out.
    pub found: usize,
}

impl Redactor {
    /// The patterns that come with this crate.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Redactor> = LazyLock::new(|| Redactor { table: Table::builtin() });
        &BUILTIN
    }

    /// The text with a marker in the place of each secret.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        self.passes(text, Breaks::Gone)
    }

    /// As [`redact`](Self::redact), with as many lines as the text has: a secret of several lines
    /// leaves their breaks behind its marker.
    #[must_use]
    pub fn redact_lines<'a>(&self, text: &'a str) -> Redacted<'a> {
        self.passes(text, Breaks::Kept)
    }

    fn passes<'a>(&self, text: &'a str, breaks: Breaks) -> Redacted<'a> {
        let mut redacted = self.once(text, breaks);
        // What stood beside a secret, or was glued to it, may be one as well: it is looked at again
        // with the marker in its place.
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
        looks::find(text, &self.table, &mut spans);
        spans.apply(text, breaks)
    }

    /// What is found by its form or its name.
    fn known<'t>(&'t self, text: &str) -> Spans<'t> {
        let mut spans = Spans::default();
        // Names are read whole: `access_token` holds three anchors and is one name.
        let mut named = 0;
        for hit in self.table.hits(text) {
            match hit.anchor {
                Anchor::Rows(rows) => {
                    // One pattern may take a text apart further than another did, so that is only
                    // looked at once more where nothing was found.
                    if hit.start < spans.formed() {
                        continue;
                    }
                    for row in rows {
                        if let Some(secret) = self.table.row(*row).find(text, &hit, &self.table) {
                            spans.secret(secret, By::Form, self.table.row(*row).name());
                            break;
                        }
                    }
                }
                Anchor::Name => {
                    if hit.start < named {
                        continue;
                    }
                    if let Some(name) = key::read(text, &hit, &self.table.words) {
                        named = name.end;
                        if let Some(value) = value::read(text, &name) {
                            if value.is_run() {
                                named = value.end;
                            }
                            match name.kind {
                                Some(kind) if judge::is_secret(kind, text, &value, &self.table) => {
                                    spans.secret(value.range(), By::Name, kind.marker());
                                }
                                None if name.harmless => spans.public(value.range()),
                                _ => {}
                            }
                        }
                    }
                }
                Anchor::Block => block::read(text, hit.start, &mut spans),
            }
        }
        spans.sort();
        spans
    }
}

#[cfg(test)]
mod tests;
