//! Names, and whether they say that their value is a secret.

use ctx_core::{Error, ErrorKind, Result};
use serde::Deserialize;

use super::table::Hit;

/// The longest name that is looked at, to each side of its anchor.
const LONGEST: usize = 80;

/// What a name says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is what somebody chose: it may be short, and a word.
    Password,
    /// Several words make one: a passphrase.
    Phrase,
    /// It is what a program made.
    Secret,
    /// A key of something: a secret if it looks random.
    Key,
    /// It may be one, if it looks so and like no digest: `key`, `auth`.
    Weak,
}

impl Kind {
    /// What its marker says.
    pub(super) fn marker(self) -> &'static str {
        match self {
            Self::Password | Self::Phrase => "password",
            Self::Secret | Self::Key | Self::Weak => "secret",
        }
    }
}

/// What a word tells of a long word after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Digest,
    Harmless,
    Secret,
}

/// A name in a text.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) start: usize,
    pub(super) end: usize,
    /// None: it says nothing.
    pub(super) kind: Option<Kind>,
    /// It says that its value is no secret: `nextPageToken`.
    pub(super) harmless: bool,
}

/// `words.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    password: Vec<String>,
    secret: Vec<String>,
    whole: Vec<String>,
    key_of: Vec<String>,
    not_of: Vec<String>,
    after: Vec<String>,
    pub(super) plain: std::collections::HashSet<String>,
    pub(super) placeholder: Vec<String>,
    pub(super) counting: Vec<String>,
    digest: Vec<String>,
    harmless: Vec<String>,
    telling: Vec<String>,
}

impl Words {
    pub(super) fn parse(toml: &str) -> Result<Self> {
        toml::from_str(toml).map_err(|e| {
            Error::new(ErrorKind::Config, "the words of redaction cannot be read").source(e)
        })
    }

    pub(super) fn anchors(&self) -> impl Iterator<Item = &str> {
        let all = self.password.iter().chain(&self.secret).chain(&self.whole);
        all.map(String::as_str).chain(["key", "passphrase", "mnemonic"])
    }

    /// The words of a line that tell what a long word is.
    pub(super) fn context(&self) -> impl Iterator<Item = &str> {
        self.digest.iter().chain(&self.harmless).chain(&self.telling).map(String::as_str)
    }

    /// What the word of that number in [`Self::context`] tells.
    pub(super) fn told(&self, nth: usize) -> Told {
        match nth {
            nth if nth < self.digest.len() => Told::Digest,
            nth if nth < self.digest.len() + self.harmless.len() => Told::Harmless,
            _ => Told::Secret,
        }
    }

    /// Whether a word beside a placeholder leaves it one.
    pub(super) fn says_nothing(&self, word: &str) -> bool {
        word.len() <= 2
            || word.bytes().all(|b| b.is_ascii_hexdigit())
            || self.plain.contains(word)
            || is(&self.after, word)
    }

    /// The words of a name without those that change nothing.
    fn bare<'w>(&self, mut words: &'w [String]) -> &'w [String] {
        while let [rest @ .., last] = words
            && !rest.is_empty()
            && (is(&self.after, last) || last.bytes().all(|b| b.is_ascii_digit()))
        {
            words = rest;
        }
        words
    }

    fn is_harmless(&self, words: &[String]) -> bool {
        matches!(self.bare(words), [.., before, _] if is(&self.not_of, before))
    }

    fn kind(&self, words: &[String]) -> Option<Kind> {
        let ends = |list: &[String], word: &str| list.iter().any(|w| word.ends_with(w.as_str()));
        let words = self.bare(words);
        let (last, rest) = words.split_last()?;
        let before = rest.last().map_or("", String::as_str);
        if self.is_harmless(words) {
            return None;
        }
        if last.ends_with("passphrase") || last == "mnemonic" {
            return Some(Kind::Phrase);
        }
        if ends(&self.password, last) || matches!(last.as_str(), "pass" | "pw") {
            return Some(Kind::Password);
        }
        if last == "key" {
            return Some(match before {
                "" => Kind::Weak,
                before if is(&self.key_of, before) => Kind::Secret,
                _ => Kind::Key,
            });
        }
        if ends(&self.secret, last) {
            return Some(Kind::Secret);
        }
        match last.as_str() {
            "auth" | "pat" | "sas" => Some(Kind::Weak),
            _ if is(&self.whole, last) => Some(Kind::Secret),
            _ if last.ends_with("key") && !is(&self.not_of, last.trim_end_matches("key")) => {
                Some(Kind::Weak)
            }
            _ => None,
        }
    }
}

fn is(list: &[String], word: &str) -> bool {
    list.iter().any(|w| w == word)
}

/// The name that an anchor stands in. None if what it stands in is too long for a name.
pub(super) fn read(text: &str, hit: &Hit<'_>, words: &Words) -> Option<Name> {
    let bytes = text.as_bytes();
    let belongs = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let after = bytes.get(hit.end..)?.iter().take(LONGEST + 1).take_while(|b| belongs(b)).count();
    let first = hit.start.saturating_sub(LONGEST + 1);
    let before = bytes.get(first..hit.start)?.iter().rev().take_while(|b| belongs(b)).count();
    if after > LONGEST || before > LONGEST {
        return None;
    }
    let (mut start, mut end) = (hit.start - before, hit.end + after);
    while end > hit.end && matches!(bytes.get(end - 1), Some(b'.' | b'-' | b'_')) {
        end -= 1;
    }
    while start < hit.start && matches!(bytes.get(start), Some(b'.' | b'-')) {
        start += 1;
    }
    // An escape is not part of a name: `\ntoken`.
    if start < hit.start && start > 0 && bytes[start - 1] == b'\\' && b"nrt".contains(&bytes[start])
    {
        start += 1;
    }
    let mut parts = split(text.get(start..end)?);
    if parts.len() == 1 {
        // `API key: ...`, `client secret = ...`
        parts.splice(0..0, word_before(text, start));
    }
    let harmless = words.is_harmless(&parts);
    Some(Name { start, end, kind: words.kind(&parts), harmless })
}

/// The word before a place, with one space or hyphen between.
fn word_before(text: &str, start: usize) -> Option<String> {
    let bytes = text.get(..start)?.as_bytes();
    let rest = bytes.strip_suffix(b" ")?;
    let length = rest.iter().rev().take(20).take_while(|b| b.is_ascii_alphanumeric()).count();
    let word = rest.get(rest.len() - length..)?;
    (length > 0).then(|| String::from_utf8_lossy(word).to_ascii_lowercase())
}

/// The words of a name, in lower case: `dbPassword`, `DB_PASSWORD` and `db-password` are two each.
pub(super) fn split(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let begins = (c.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && after.is_ascii_lowercase())))
            || (c.is_ascii_digit() && before.is_ascii_alphabetic())
            || (c.is_ascii_alphabetic() && before.is_ascii_digit());
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.push(c.to_ascii_lowercase());
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_as_people_write_them() {
        for name in ["dbPassword", "DB_PASSWORD", "db-password", "DBPassword", "db.password"] {
            assert_eq!(split(name), ["db", "password"], "{name}");
        }
        assert_eq!(split("APIKey2Value"), ["api", "key", "2", "value"]);
    }

    #[test]
    fn the_end_of_a_name_decides() {
        let words = Words::parse(include_str!("words.toml")).unwrap();
        let kind = |name: &str| words.kind(&split(name));
        for name in ["password", "DB_PASS", "userPassword", "pgpassword", "ADMIN_PASSWORD_2"] {
            assert_eq!(kind(name), Some(Kind::Password), "{name}");
        }
        for name in [
            "api_key",
            "X-Api-Key",
            "clientSecret",
            "accessToken",
            "JWT_SECRET",
            "OPENAI_API_KEY_PROD",
        ] {
            assert_eq!(kind(name), Some(Kind::Secret), "{name}");
        }
        for name in [
            "max_tokens",
            "tokenizer",
            "public_key",
            "nextPageToken",
            "secretName",
            "key_id",
            "monkey_id",
            "compass",
            "keyboard",
        ] {
            assert_eq!(kind(name), None, "{name}");
        }
        assert_eq!(kind("key"), Some(Kind::Weak));
    }
}
