//! Parses the value after a name.

use ctx_core::text::{Slice, head_bytes};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::name::Name;

/// The maximum length of a value.
const LONGEST: usize = 4096;

/// Names inside an unquoted word that is longer than this are ignored.
const LONGEST_RUN: usize = 256;

/// The maximum number of blanks on each side of a separator.
const BLANKS: usize = 40;

/// The maximum number of backslashes before a quote: JSON in a JSON string, escaped four times.
const SLASHES: usize = 15;

/// The minimum length of an unquoted word after a verb. Shorter words describe a password's length
/// or storage.
const SHORTEST_AFTER_VERB: usize = 8;

/// A value, and how it is written.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) form: Form,
}

/// The form of a value. The check for secrets is stricter for some forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In quotes.
    Quoted,
    /// In quotes, as the argument of a call.
    Argument,
    /// The rest of a line that begins with its name: `.env` files, YAML, headers.
    Line,
    /// After a command-line flag.
    Flag,
    /// One of several fields, as in connection strings, URL queries and logs: `;name=value`.
    Field,
    /// A word in other text, where a variable may occur as well.
    Bare,
}

impl Value {
    /// Whether names inside it are skipped. In a long word they occur by chance, and the value of
    /// each name would be read to the end of the word.
    pub(crate) fn is_run(&self) -> bool {
        !matches!(self.form, Form::Quoted | Form::Argument) && self.end - self.start > LONGEST_RUN
    }

    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// Returns the value after a name, if there is one.
pub(crate) fn read(text: &str, name: &Name) -> Option<Value> {
    let mut at = Cursor { bytes: text.as_bytes(), at: name.end };
    let before = text.as_bytes().get(..name.start)?;
    at.skip(b"\\", SLASHES);
    let quoted = at.skip(b"\"'`", 1) > 0;
    if quoted {
        at.skip(b"])", 1);
    }
    at.skip(b"*_", 2);
    // XML: <password>...</password>
    if before.ends_with(b"<") && at.peek() == Some(b'>') {
        at.at += 1;
        return at.until(|b| b == b'<' || b == b'\n', Form::Quoted);
    }
    // name: DB_PASSWORD, value: ... in JSON, YAML and XML.
    for named in [&NAMED_VALUE, &DEFAULT] {
        if let Some(length) = matched(named, text, at.at) {
            at.at += length;
            return at.value(text, Form::Line);
        }
    }
    if let Some(length) = matched(&VERB, text, at.at) {
        return at.after_verb(text, length);
    }
    let blanks = at.blanks();
    let form = match separator(text, &mut at) {
        Some(form) => form,
        None if blanks == 0 => return None,
        None if before.ends_with(b"--") && at.peek() != Some(b'-') => Form::Flag,
        None if declares(before) => Form::Line,
        None if matches!(at.peek(), Some(b'"' | b'\'')) => Form::Argument,
        None => return None,
    };
    if form == Form::Argument && !quoted && blanks == 0 && !at.at_quote() {
        return None;
    }
    at.blanks();
    let stars = at.skip(b"*", 2);
    at.blanks();
    let form = match form {
        Form::Bare if begins_line(before) => Form::Line,
        Form::Bare if exports(before, text.as_bytes().get(name.end..at.at)) => Form::Flag,
        Form::Bare if is_field(before, text.as_bytes().get(name.end..at.at)) => Form::Field,
        form => form,
    };
    if let Some(length) = matched(&BLOCK_SCALAR, text, at.at) {
        at.at += length;
        return at.until(|b| b == b'\n', Form::Line);
    }
    without_stars(text, at.value(text, form)?, stars)
}

/// Removes the asterisks of Markdown emphasis. An emphasised word describes the value: `password:
/// *optional*`.
fn without_stars(text: &str, value: Value, stars: usize) -> Option<Value> {
    let found = text.get(value.range())?;
    let trimmed = found.trim_end_matches(['.', ',', ':', ';', ')']);
    let word = trimmed.trim_end_matches('*');
    if stars == 0 || trimmed.len() - word.len() != stars {
        return Some(value);
    }
    let is_word = word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
    (!is_word).then_some(Value { end: value.start + word.len(), ..value })
}

/// Parses the separator between a name and its value, and returns the value's form.
fn separator(text: &str, at: &mut Cursor<'_>) -> Option<Form> {
    let rest = text.get(at.at..)?;
    for known in [&TYPED_COLON, &TYPED, &SEPARATOR] {
        if let Some(length) = matched(known, text, at.at) {
            at.at += length;
            return Some(Form::Bare);
        }
    }
    if rest.starts_with(':') {
        at.at += 1;
        // `key::path`, `http://`
        return (!matches!(at.peek(), Some(b':' | b'/'))).then_some(Form::Bare);
    }
    for sign in [",", "("] {
        if rest.starts_with(sign) {
            at.at += 1;
            at.blanks();
            return at.at_quote().then_some(Form::Argument);
        }
    }
    None
}

/// Whether a line begins here, apart from markers of lists, shells and patches.
fn begins_line(before: &[u8]) -> bool {
    let from = before.len().saturating_sub(60);
    let line = before.slice(from..);
    let line = line.rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    text.split_whitespace().all(|word| {
        matches!(word, "-" | "+" | "*" | "#" | ">" | "//" | "export" | "set" | "ENV" | "ARG" | "$")
    })
}

/// Whether the name is one of several fields: `?name=`, `;name=`, and `user=me name=`.
fn is_field(before: &[u8], separator: Option<&[u8]>) -> bool {
    let word = || {
        let from = before.len().saturating_sub(80);
        let before = before.slice(from..).trim_ascii_end();
        before.rsplit(|b| b.is_ascii_whitespace()).next().unwrap_or_default()
    };
    separator == Some(b"=")
        && match before.last() {
            Some(b';' | b'&' | b'?') => true,
            Some(b' ') => {
                word().contains(&b'=') && !word().ends_with(b",") && !word().ends_with(b"=")
            }
            _ => false,
        }
}

/// Whether the name is exported, anywhere in a line: `export NAME=value`.
fn exports(before: &[u8], separator: Option<&[u8]>) -> bool {
    separator == Some(b"=") && before.ends_with(b"export ")
}

/// Whether a Dockerfile declares the name: `ENV NAME value`.
fn declares(before: &[u8]) -> bool {
    before.ends_with(b"ENV ") || before.ends_with(b"ARG ")
}

static NAMED_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"^[,;]?\s{0,60}\+?\s{0,60}\\?["']?"#,
        r#"(?i:value|secretvalue|string_value|content)\\?["']?[ \t]{0,4}(?:[:=]|=>)[ \t]{0,4}"#
    ))
});

/// Terraform: `variable "api_key" { default = `.
static DEFAULT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^\s{0,4}\{\s{0,40}(?:(?:description|type|sensitive)[^\n]{0,120}\s{1,40}){0,3}",
        r"(?:default|value)[ \t]{0,20}=[ \t]{0,4}"
    ))
});

/// `name: Type = `, where types may have parameters.
static TYPED_COLON: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^:[ \t]{0,4}[&A-Za-z_][A-Za-z0-9_<>\[\]:'&|?. ]{0,40}?[ \t]{0,4}=[ \t]{0,4}")
});

/// `name string = `, and C's `name[] = `.
static TYPED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?:\*?string|\[\]byte|\[\d{0,4}\])[ \t]{0,4}:?=[ \t]{0,4}"));

/// `密码是：...`, `口令为“...”`.
static VERB: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^[ \t]{0,4}[是为][ \t]{0,4}[:：]?[ \t]{0,4}[“‘「『]?"));

/// `|`, `>-` and the like, with the value on the next line.
static BLOCK_SCALAR: LazyLock<Regex> = LazyLock::new(|| compiled(r"^[|>][+-]?\n[ \t]{1,40}"));

/// Text that may be between the separator and a quote: `b"`, `Some("`, `String::from("`, `["`.
static WRAPPED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"^(?:[\[({][ \t]{0,4})?(?:new[ \t]{1,4})?"#,
        r#"(?:[brfuLR@$]{1,2}|(?:[A-Za-z_][A-Za-z0-9_:.]{0,60}\([ \t]{0,4}){1,3}[brfu]?)?"#,
        r#"\\{0,15}["'`]"#
    ))
});

/// A quoted value on the next line.
static NEXT_LINE: LazyLock<Regex> = LazyLock::new(|| compiled(r#"^\(?\\?\r?\n[ \t]{1,80}["'`]"#));

/// The authentication scheme before the secret.
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?i:bearer|basic|token|apikey|bot|oauth)[ \t]{1,4}"));

/// The separators that may be followed by anything.
static SEPARATOR: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?:===|!==|==|!=|:=|=>|->|\?=|\|\|=|\?\?=|=|：|\|)"));

pub(crate) fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the tests of this crate use all patterns")
}

/// Returns the length of the match that begins at a position.
fn matched(regex: &Regex, text: &str, at: usize) -> Option<usize> {
    let end = head_bytes(text, at.saturating_add(400)).len();
    Some(regex.find(text.get(at..end)?)?.end())
}

#[derive(Clone, Copy)]
struct Cursor<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, any: &[u8], most: usize) -> usize {
        let rest = self.bytes.slice(self.at..);
        let found = rest.iter().take(most).take_while(|b| any.contains(b)).count();
        self.at += found;
        found
    }

    fn blanks(&mut self) -> usize {
        self.skip(b" \t", BLANKS)
    }

    fn at_quote(&self) -> bool {
        let rest = self.bytes.slice(self.at..);
        let slashes = rest.iter().take(SLASHES).take_while(|b| **b == b'\\').count();
        matches!(rest.get(slashes), Some(b'"' | b'\'' | b'`'))
    }

    /// Returns the value after a verb of this length: a quoted text, or an ASCII word in text of
    /// another script.
    fn after_verb(mut self, text: &str, verb: usize) -> Option<Value> {
        self.at += verb;
        if self.at_quote() {
            return self.value(text, Form::Bare);
        }
        let is_quoted = text.get(..self.at)?.ends_with(['“', '‘', '「', '『']);
        let form = if is_quoted { Form::Quoted } else { Form::Bare };
        let found = self.until(|b| !b.is_ascii_graphic(), form)?;
        let goes_on = text.get(found.end..)?.starts_with(char::is_alphanumeric);
        let is_value = is_quoted || !goes_on && found.end - found.start >= SHORTEST_AFTER_VERB;
        is_value.then_some(found)
    }

    fn value(mut self, text: &str, form: Form) -> Option<Value> {
        if let Some(length) = matched(&NEXT_LINE, text, self.at) {
            self.at += length - 1;
        }
        let wrapped = matched(&WRAPPED, text, self.at);
        let Some(length) = wrapped else { return self.unquoted(text, form) };
        let inner = text.get(self.at..self.at + length)?;
        // The argument of a call that reads the environment is a variable name, not a value.
        let call = inner.trim_end_matches(['"', '\'', '`', '\\']);
        let form = match form {
            _ if call.contains('(') && reads(call) => return None,
            _ if call.len() > 3 => Form::Argument,
            Form::Argument => Form::Argument,
            _ => Form::Quoted,
        };
        let slashes = inner.len() - 1 - inner[..inner.len() - 1].trim_end_matches('\\').len();
        let quote = *inner.as_bytes().last()?;
        self.at += length;
        // Python's triple quotes.
        if self.bytes.get(self.at..self.at + 2) == Some(&[quote, quote]) {
            self.at += 2;
        }
        self.scheme(text);
        self.quoted(quote, slashes, form)
    }

    fn scheme(&mut self, text: &str) {
        self.at += matched(&SCHEME, text, self.at).unwrap_or_default();
    }

    /// Reads up to the closing quote, or to the end of the word if there is none.
    fn quoted(self, quote: u8, slashes: usize, form: Form) -> Option<Value> {
        let rest = self.bytes.get(self.at..)?;
        let mut escapes = 0;
        for (length, b) in rest.iter().take(LONGEST).enumerate() {
            match b {
                b'\\' => escapes += 1,
                b'\n' => break,
                // A quote ends it if it has at most as many backslashes as the first quote.
                b if *b == quote && (escapes <= slashes && (escapes == slashes || slashes > 0)) => {
                    let end = self.at + length - escapes;
                    return self.ends(end, form);
                }
                b if *b == quote && escapes % 2 == 0 && slashes == 0 => {
                    return self.ends(self.at + length, form);
                }
                _ => escapes = 0,
            }
        }
        self.until(|b| b.is_ascii_whitespace() || b == quote || b == b'\\', form)
    }

    fn unquoted(mut self, text: &str, form: Form) -> Option<Value> {
        self.scheme(text);
        match form {
            Form::Line => {
                let value =
                    self.until(|b| b.is_ascii_whitespace() || b"\"'`<>".contains(&b), form)?;
                let text = text.get(value.range())?;
                // Inside a JSON string, an escaped `\n` ends the line.
                let text = text.split("\\n").next().unwrap_or_default();
                let end = value.start + text.trim_end_matches([',', ';', '\\', '|']).len();
                (end > value.start).then_some(Value { end, ..value })
            }
            _ => self.until(|b| b.is_ascii_whitespace() || b"\"'`<>,;)}]|&\\".contains(&b), form),
        }
    }

    fn until(self, stop: impl Fn(u8) -> bool, form: Form) -> Option<Value> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().take_while(|b| !stop(**b)).count();
        self.ends(self.at + length, form)
    }

    fn ends(self, end: usize, form: Form) -> Option<Value> {
        (end > self.at).then_some(Value { start: self.at, end, form })
    }
}

/// Whether a call looks up a value by the name in its argument.
fn reads(call: &str) -> bool {
    let call = call.to_ascii_lowercase();
    let last = call.trim_end_matches(['(', ' ', '\t']);
    let last = last.rsplit(['(', ' ']).next().unwrap_or_default();
    let name = last.rsplit(['.', ':']).next().unwrap_or_default();
    const READS: [&str; 20] = [
        "env", "get", "param", "config", "input", "prompt", "require", "read", "load", "open",
        "find", "select", "var", "lookup", "option", "fetch", "arg", "flag", "field", "label",
    ];
    matches!(name, "t" | "i18n" | "_" | "gettext" | "include" | "import" | "ref" | "z")
        || READS.iter().any(|word| name.contains(word))
}
