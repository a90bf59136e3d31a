//! Decides whether a value is a secret, or a placeholder, variable or code.

use crate::name::{FieldWords, Kind, split};
use crate::span::MARKER;
use crate::value::{Form, Value, compiled};
use ctx_core::Chars;
use ctx_core::text::{Slice, tail};
use regex::Regex;
use serde::Deserialize;
use std::sync::LazyLock;

/// The check that a match must pass to be a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Check {
    /// Not a placeholder; nothing else is checked, because the form alone indicates a secret.
    #[default]
    Form,
    /// Not a placeholder, variable or call.
    Value,
    /// Like `Value`, and not a number, a name in lower case or a date format, because the flag
    /// before it has other meanings as well.
    Argument,
    /// Not a placeholder, variable or call, and contains digits or mixed case.
    Random,
    /// One of its cookies looks random, or is named like a session cookie.
    Cookie,
    /// A password in a URL, and not a port.
    Url,
}

/// Whether a pattern's match passes its check.
pub(crate) fn passes(check: Check, found: &str, words: &FieldWords) -> bool {
    if found.contains(MARKER) || is_blank(found) {
        return false;
    }
    match check {
        Check::Form => !is_placeholder(found, words),
        Check::Value => !is_reference(found) && !is_description(found, words) && !is_header(found),
        Check::Argument => {
            let is_number = found.bytes().all(|b| b.is_ascii_digit());
            let is_name = found.bytes().all(|b| b.is_ascii_lowercase() || b"/._-".contains(&b));
            let is_format = found.starts_with(['%', '+']);
            !is_number
                && !is_name
                && !is_format
                && !is_reference(found)
                && !is_description(found, words)
        }
        Check::Random => !is_reference(found) && !is_placeholder(found, words) && is_mixed(found),
        Check::Cookie => found.split(';').any(|cookie| {
            let Some((name, value)) = cookie.trim().split_once('=') else { return false };
            let name = name.to_ascii_lowercase();
            let session = ["sess", "sid", "auth", "token", "jwt", "login", "remember", "connect"];
            !is_reference(value)
                && !is_placeholder(value, words)
                && ((value.len() >= 8 && session.iter().any(|part| name.contains(part)))
                    || (value.len() >= 20 && is_random(value)))
        }),
        Check::Url => {
            let port = found.split(['/', '?', '#']).next().unwrap_or_default();
            let is_port = port.len() < found.len() && port.bytes().all(|b| b.is_ascii_digit());
            !is_port && !is_reference(found) && !is_description(found, words)
        }
    }
}

/// Whether the value of a name of this kind is a secret.
pub(crate) fn is_secret(kind: Kind, text: &str, value: &Value, words: &FieldWords) -> bool {
    let Some(found) = text.get(value.range()) else { return false };
    let found = found.trim();
    if found.contains(MARKER)
        || is_blank(found)
        || is_reference(found)
        || is_description(found, words)
    {
        return false;
    }
    let spaces = found.split_whitespace().count() - 1;
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    let letters = found.bytes().filter(u8::is_ascii_alphabetic).count();
    match kind {
        Kind::Phrase => match value.form {
            Form::Quoted | Form::Argument => found.len() >= 8,
            _ => found.len() >= 6 && is_chosen(found, value.form),
        },
        Kind::Password if spaces > 0 => false,
        Kind::Password if digits > 0 && is_variable(text.slice(..value.start)) => {
            found.len() >= 4 && is_chosen(found, Form::Line)
        }
        Kind::Password => found.len() >= 4 && is_chosen(found, value.form),
        Kind::Secret if spaces > 0 || found.len() < 8 => false,
        Kind::Secret if letters == 0 => found.len() >= 20 && digits == found.len(),
        Kind::Secret if is_random(found) => true,
        Kind::Secret if digits == 0 => {
            // A password in a position where no variable can occur.
            let settled = matches!(value.form, Form::Quoted | Form::Argument)
                || (value.form == Form::Line
                    && text.as_bytes().get(value.start - 1) == Some(&b'='));
            let name = text.slice(..value.start);
            let secret = tail(name, Chars(24));
            settled
                && found.len() >= 12
                && (is_special(found)
                    || (secret.to_ascii_lowercase().contains("secret")
                        && is_chosen(found, value.form)))
        }
        Kind::Secret => !is_wordy(found) && !is_measure(found),
        Kind::Key => found.len() >= 20 && spaces == 0 && is_random(found) && !is_path(found),
        Kind::Weak => {
            found.len() >= 20
                && spaces == 0
                && is_random(found)
                && !is_hex(found)
                && !is_path(found)
        }
    }
}

/// Whether it may be a password chosen by a person, and not code.
fn is_chosen(found: &str, form: Form) -> bool {
    let digits = found.bytes().any(|b| b.is_ascii_digit());
    let letters = found.bytes().any(|b| b.is_ascii_alphabetic());
    match form {
        Form::Quoted | Form::Argument => {
            // The name of a translation or of a rule: `auth.password.label`, `required|min:8`.
            let dotted = found.contains('.') && is_dotted(found);
            !dotted && !found.contains('|') && !is_path(found)
        }
        Form::Line | Form::Flag | Form::Field => {
            let code = found.contains('(') && found.ends_with(')');
            !code && !is_path(found) && (digits || is_special(found) || found.len() >= 6 && letters)
        }
        Form::Bare => {
            !is_path(found)
                && (is_special(found)
                    || is_random(found)
                    || (digits && letters && !is_wordy(found)))
        }
    }
}

/// Whether the text before a value assigns a variable, also in the middle of a line:
/// `DB_PASSWORD=`.
fn is_variable(before: &str) -> bool {
    let Some(before) = before.strip_suffix('=') else { return false };
    let name = before.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default();
    let is_upper = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    name.contains('_') && name.bytes().all(is_upper)
}

/// Whether it has too few distinct characters to be a secret.
fn is_blank(found: &str) -> bool {
    let mut distinct = [false; 256];
    found.bytes().for_each(|b| distinct[usize::from(b)] = true);
    let distinct = distinct.iter().filter(|seen| **seen).count();
    distinct < 3 || (found.len() >= 20 && distinct < 6)
}

/// Whether it refers to a value elsewhere: a variable, template or call.
fn is_reference(found: &str) -> bool {
    let starts = ["$", "<", "{{", "{%", "%(", "#{", "&", "!", "(", "{", "@", "..."];
    let is_variable = starts.iter().any(|start| found.starts_with(start))
        // A password may begin with some of these as well, if a special character and a digit
        // follow.
        && !(found.starts_with(['$', '!', '@', '&', '#', '('])
            && !found.starts_with("${")
            && !found.starts_with("$(")
            && is_special(&found[1..])
            && found.bytes().any(|b| b.is_ascii_digit()));
    is_variable
        || REFERENCE.is_match(found)
        || (is_dotted(found) && !is_random(found))
        || is_call(found)
        || (found.contains("://") && !found.contains('@'))
}

/// Parts of templates, variables and addresses of secrets, anywhere in a value.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?sx) \$\{ | \{\{ | \$\( | process\.env | environ | getenv | <% | secrets\. | vault:
          | op:// | arn:aws | ^%.+%$ | \{.*\}",
    )
});

/// Whether it is a path of names: `config.auth.token`, `Self::SECRET`, `user->password`, `keys[0]`.
fn is_dotted(found: &str) -> bool {
    let parts: Vec<&str> =
        found.split(['.', ':', '[', ']', '?', '>']).filter(|p| !p.is_empty()).collect();
    let name = |part: &&str| {
        let part = part.trim_end_matches(['-', '!']);
        let first = part.bytes().next().unwrap_or(b' ');
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        (first.is_ascii_alphabetic() || first == b'_' || part.len() < 3)
            && digits <= 2
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    parts.len() > 1 && parts.iter().all(name)
}

/// Whether it is a call, `name(...)`, complete or cut off.
fn is_call(found: &str) -> bool {
    let Some((name, _)) = found.split_once('(') else { return false };
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:".contains(&b))
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && (found.ends_with(')')
            || found.ends_with('(')
            || !found.bytes().any(|b| b.is_ascii_digit()))
}

/// Whether it is the name of a header, as in the list `"authorization", "x-api-key"`.
fn is_header(found: &str) -> bool {
    found.starts_with("x-")
        && found.ends_with("-key")
        && found.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
}

/// Whether it describes a value instead of giving it: `required`, `your-key`.
fn is_description(found: &str, words: &FieldWords) -> bool {
    is_plain(found, words) || is_placeholder(found, words)
}

fn is_plain(found: &str, words: &FieldWords) -> bool {
    let mut any = false;
    split(found).iter().all(|word| {
        any = true;
        words.plain.contains(word) || (word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit()))
    }) && any
        // `pass1!` is a weak password.
        && !found.bytes().any(|b| b"!@#$%^&*".contains(&b))
        && !ends_in_digits(found)
}

/// Whether at least three digits follow a letter at the end: `secret123`, but not `token_2`.
fn ends_in_digits(found: &str) -> bool {
    let digits = found.bytes().rev().take_while(u8::is_ascii_digit).count();
    let before = found.len().checked_sub(digits + 1).and_then(|at| found.as_bytes().get(at));
    digits >= 3 && before.is_some_and(u8::is_ascii_alphabetic)
}

fn is_placeholder(found: &str, words: &FieldWords) -> bool {
    let lower = found.to_ascii_lowercase();
    let counts = |word: &String| {
        lower.contains(word.as_str())
            && split(&lower.replace(word.as_str(), " ")).iter().all(|rest| words.is_filler(rest))
    };
    if words.counting.iter().any(counts) {
        return true;
    }
    // A long value may contain any short word by chance.
    let Some(word) = words.placeholder.iter().find(|word| lower.contains(word.as_str())) else {
        return false;
    };
    let rest = lower.replacen(word.as_str(), "", 1);
    let digits = rest.bytes().filter(u8::is_ascii_digit).count();
    // `wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY` contains "example" but has the form of a key.
    let random =
        found.len() >= 20 && is_random(&found.replacen(word.as_str(), "", 1)) && digits > 0;
    !(random && word.bytes().all(|b| b.is_ascii_alphabetic()) && word.as_str() != "xxxx")
}

/// Whether it consists of words and numbers: `step-2`, `access_token_v2`, `us-east-1`.
fn is_wordy(found: &str) -> bool {
    let parts = found.split(['-', '_', '.', ':', '/', ' ']).filter(|part| !part.is_empty());
    let mut wordy = true;
    let mut words = 0;
    for part in parts {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        let camel = letters.bytes().skip(1).filter(u8::is_ascii_uppercase).count();
        let is_word = letters.bytes().all(|b| b.is_ascii_alphabetic())
            && (camel <= letters.len() / 4 || camel + 1 == letters.len());
        wordy &= is_word && digits <= 2 || letters.is_empty() && digits <= 4;
        words += usize::from(is_word && letters.len() >= 3);
    }
    wordy && words > 0
}

/// Whether it is a number with a unit, a date or a version.
fn is_measure(found: &str) -> bool {
    let letters = found.bytes().filter(u8::is_ascii_alphabetic).count();
    let marks = found.bytes().filter(|b| b"-:.,+/ ".contains(b)).count();
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    letters + marks + digits == found.len()
        && letters <= 3
        && digits + marks > letters
        && found.len() < 32
        && found.starts_with(|c: char| c.is_ascii_digit() || c == 'v')
}

/// Whether it is the path of a file or a URL.
fn is_path(found: &str) -> bool {
    let starts = ["/", "./", "../", "~/", "C:\\", "file:"];
    let words = |part: &str| part.bytes().all(|b| b.is_ascii_lowercase() || b"_-.*".contains(&b));
    let parts: Vec<&str> = found.split('/').filter(|p| !p.is_empty()).collect();
    let has_word = parts.iter().any(|part| part.len() >= 3 && words(part));
    (starts.iter().any(|start| found.starts_with(start)) && (has_word || found.len() < 20))
        || (parts.len() > 1 && parts.iter().filter(|part| words(part)).count() * 2 > parts.len())
        || FILE.is_match(found)
}

static FILE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\.(?:pem|key|json|ya?ml|txt|crt|go|ts|js|py|rs)$"));

fn is_special(found: &str) -> bool {
    found.bytes().any(|b| b"!@#$%^&*~+?=".contains(&b) || !b.is_ascii())
}

/// Whether it contains only hexadecimal digits, after an optional `0x`.
pub(crate) fn is_hex(found: &str) -> bool {
    let digits = found.strip_prefix("0x").unwrap_or(found);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether it contains digits or mixed case, and does not consist of words.
fn is_mixed(found: &str) -> bool {
    let digits = found.bytes().any(|b| b.is_ascii_digit());
    let upper = found.bytes().any(|b| b.is_ascii_uppercase());
    let lower = found.bytes().any(|b| b.is_ascii_lowercase());
    (digits || (upper && lower && changes(found) > 0.3)) && !is_wordy(found) && bits(found) > 2.5
}

/// Whether it looks generated: character classes change often, and many characters differ.
pub(crate) fn is_random(found: &str) -> bool {
    if found.len() < 12 || found.bytes().any(|b| b.is_ascii_whitespace()) || is_wordy(found) {
        return false;
    }
    let digits = found.bytes().filter(u8::is_ascii_digit).count();
    let upper = found.bytes().filter(u8::is_ascii_uppercase).count();
    let lower = found.bytes().filter(u8::is_ascii_lowercase).count();
    let entropy = bits(found);
    if is_hex(found) {
        return digits >= 2 && digits < found.len() && entropy > 2.7;
    }
    let kinds = [digits, upper, lower].iter().filter(|count| **count > 0).count();
    match kinds {
        3 => entropy > 3.2 && changes(found) > 0.33,
        2 if digits > 0 => entropy > 3.0 && digits >= 2 && changes(found) > 0.2,
        2 => entropy > 3.6 && changes(found) > 0.38,
        _ => false,
    }
}

/// Returns the entropy in bits per character.
pub(crate) fn bits(found: &str) -> f32 {
    let mut counts = [0u32; 256];
    found.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let all = found.len() as f32;
    let share = |count: &u32| *count as f32 / all;
    counts.iter().filter(|count| **count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

/// Returns the share of positions where the character class changes: 0.62 for random letters and
/// digits, 0.40 for `namesInCamelCase`.
pub(crate) fn changes(found: &str) -> f32 {
    let class = |b: u8| match b {
        b'0'..=b'9' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'a'..=b'z' => Some(2),
        _ => None,
    };
    let classes: Vec<_> = found.bytes().filter_map(class).collect();
    let changes = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    changes as f32 / classes.len().saturating_sub(1).max(1) as f32
}
