//! Recognises error codes, ids and names in code by the shape of one word.

use crate::SpanKind;
use crate::WordList;

use super::lists::{
    BRANCH_PREFIXES, ERRNOS, ERROR_PREFIXES, PLAIN_WORDS, TOP_DOMAINS, is_brand, is_standard,
};

/// Words that form an ordinal with a number: `step-3`.
static COUNTED: WordList = WordList::new("counted");

/// Classifies a word by its shape.
pub(super) fn by_shape(word: &str, quoted: bool) -> Option<SpanKind> {
    if is_error(word) {
        return Some(SpanKind::ErrorCode);
    }
    if is_id(word) {
        return Some(SpanKind::Id);
    }
    if is_code_name(word) || (quoted && is_quoted_name(word)) {
        return Some(SpanKind::CodeName);
    }
    None
}

/// Whether a word is an address without a scheme: `example.com/a`, `www.example.com`.
pub(super) fn is_host(word: &str) -> bool {
    let host = word.split(['/', ':', '?']).next().unwrap_or(word);
    let Some((name, top)) = host.rsplit_once('.') else { return false };
    let labels = name.split('.').count();
    TOP_DOMAINS.has(top)
        && !name.is_empty()
        && host.split('.').all(|label| {
            !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
        && name.bytes().any(|b| b.is_ascii_alphabetic())
        // `foo.in` and `this.test` are not hosts, `foo.com` is.
        && (labels > 1 || word.contains('/') || matches!(top, "com" | "org" | "net" | "io" | "dev" | "cn" | "ai" | "edu" | "gov"))
        && !matches!(name, "self" | "this")
}

fn is_error(word: &str) -> bool {
    if ERRNOS.has(word) {
        return true;
    }
    let last = word.rsplit(['.', ':']).next().unwrap_or(word);
    let kind = ["Error", "Exception"].into_iter().find_map(|end| last.strip_suffix(end));
    if let Some(stem) = kind {
        let is_type = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        return stem.len() >= 2
            && stem.starts_with(|c: char| c.is_ascii_uppercase())
            && stem.bytes().all(is_type);
    }
    if let Some(rest) = word.strip_prefix("ERR_") {
        return rest.len() >= 3
            && rest.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit());
    }
    if word.starts_with("0x8") && word.len() == 10 {
        return word.bytes().skip(2).all(|b| b.is_ascii_hexdigit());
    }
    if let Some(rest) = word.strip_prefix("ORA-") {
        return rest.len() >= 4 && rest.bytes().all(|b| b.is_ascii_digit());
    }
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let (prefix, number) = word.split_at(letters);
    (3..=6).contains(&number.len())
        && number.bytes().all(|b| b.is_ascii_digit())
        && ERROR_PREFIXES.has(prefix)
}

fn is_id(word: &str) -> bool {
    let bytes = word.as_bytes();
    if let Some(digits) = word.strip_prefix('#') {
        let number = (1..=7).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let colour = matches!(digits.len(), 6 | 8) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        return number || colour;
    }
    if is_hash(word) || is_uuid(word) || is_version(word) || is_address(word) || is_mail(word) {
        return true;
    }
    if let Some(hex) = word.strip_prefix("0x") {
        return hex.len() >= 4 && hex.len() <= 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        return (6..=32).contains(&bytes.len());
    }
    if let Some((name, version)) = word.rsplit_once('@') {
        let version = version.trim_start_matches(['^', '~', 'v']);
        return !name.is_empty()
            && version.starts_with(|c: char| c.is_ascii_digit())
            && version.contains('.');
    }
    if let Some((first, rest)) = word.split_once('/') {
        return BRANCH_PREFIXES.has(first)
            && !rest.is_empty()
            && rest.bytes().all(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/' | b'.' | b'#')
            });
    }
    is_ticket(word) || is_number_of(word) || is_opaque(word)
}

/// Whether a word is the number of a contract, an order or a part: `4471-AC-09`.
fn is_number_of(word: &str) -> bool {
    let parts = || word.split('-');
    let upper = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    };
    (2..=5).contains(&parts().count())
        && word.starts_with(|c: char| c.is_ascii_digit())
        && parts().all(upper)
        && word.bytes().any(|b| b.is_ascii_uppercase())
        && word.bytes().filter(u8::is_ascii_digit).count() >= 4
}

/// Whether a word is hexadecimal with letters and digits, at least as long as git's short hashes.
fn is_hash(word: &str) -> bool {
    let word = word.strip_prefix("sha256:").unwrap_or(word);
    let (mut digits, mut letters) = (0, 0);
    for b in word.bytes() {
        match b {
            b'0'..=b'9' => digits += 1,
            b'a'..=b'f' | b'A'..=b'F' => letters += 1,
            _ => return false,
        }
    }
    (7..=128).contains(&word.len()) && digits > 0 && letters > 0
        // `1000000b` and `5e10000` are numbers.
        && !(letters == 1 && word.len() < 12 && word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).bytes().all(|b| b.is_ascii_digit()))
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// `1.2.3`, `v2.0`, `0.3.0-rc.1`.
fn is_version(word: &str) -> bool {
    let bare = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let core = bare.split(['-', '+']).next().unwrap_or(bare);
    let numbers = core.split('.').count();
    let least = if bare.len() < word.len() { 2 } else { 3 };
    (least..=5).contains(&numbers)
        && core.split('.').all(|n| {
            (1..=9).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()) || n == "x"
        })
        && core.starts_with(|c: char| c.is_ascii_digit())
        && bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'))
}

/// Whether a word is an address: `10.0.0.1:8080`, `10.0.0.0/16`, `localhost:3000`; not `[::1]:80`.
fn is_address(word: &str) -> bool {
    let (host, port) = word.split_once([':', '/']).unwrap_or((word, ""));
    if !port.bytes().all(|b| b.is_ascii_digit()) || port.len() > 5 {
        return false;
    }
    let mut parts = host.split('.');
    let ip = parts.clone().count() == 4 && parts.all(|part| part.parse::<u8>().is_ok());
    let named = !port.is_empty()
        && word.contains(':')
        && (2..=5).contains(&port.len())
        && host.len() >= 3
        && host.starts_with(|c: char| c.is_ascii_lowercase())
        && host.bytes().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'_')
        })
        && (host == "localhost" || host.contains(['.', '-']) || port.len() >= 4);
    ip || named
}

fn is_mail(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else { return false };
    !name.is_empty()
        && host
            .rsplit_once('.')
            .is_some_and(|(_, top)| top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic()))
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'.' | b'_' | b'-' | b'+'))
}

/// `ABC-123`, `CVE-2024-1234`, `gpt-4o`, `us-east-1`.
fn is_ticket(word: &str) -> bool {
    let Some((first, rest)) = word.split_once('-') else { return false };
    if is_standard(word) || word.len() > 64 || rest.is_empty() {
        return false;
    }
    let simple = word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    let digit = rest.bytes().any(|b| b.is_ascii_digit());
    let upper =
        first.len() >= 2 && first.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let lower =
        first.len() >= 2 && first.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    simple
        && digit
        && first.starts_with(|c: char| c.is_ascii_alphabetic())
        && (upper && rest.starts_with(|c: char| c.is_ascii_digit())
            || lower && rest.split('-').all(|part| !part.is_empty()) && !is_counted(first, rest))
}

/// `step-2`, `top-5`: ordinals in words.
fn is_counted(first: &str, rest: &str) -> bool {
    rest.len() <= 3 && rest.bytes().all(|b| b.is_ascii_digit()) && COUNTED.contains(&first)
}

/// Whether it is long and mixes letters and digits: `toolu_01AbC...`, `req_011CS...`, `AKIA...`.
fn is_opaque(word: &str) -> bool {
    if !(10..=120).contains(&word.len())
        || !word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    {
        return false;
    }
    let last = word.rsplit(['_', '-']).next().unwrap_or(word);
    let digits = last.bytes().filter(u8::is_ascii_digit).count();
    let letters = last.bytes().filter(u8::is_ascii_alphabetic).count();
    digits >= 3 && letters >= 2 && last.len() >= 8
}

/// `retry_after`, `getUser`, `UserService`, `std::fs::read`, `--no-verify`, `login()`, `$HOME`.
fn is_code_name(word: &str) -> bool {
    if word.len() > 100 {
        return false;
    }
    if let Some(flag) = word.strip_prefix("--") {
        return flag.len() >= 2
            && flag.starts_with(|c: char| c.is_ascii_lowercase())
            && flag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    }
    if let Some(name) = word.strip_suffix("()") {
        return name.len() >= 2 && is_dotted(name);
    }
    if let Some(name) = word.strip_prefix('$') {
        return name.len() >= 3
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit());
    }
    if let Some(name) = word.strip_prefix('@') {
        let mut parts = name.split('/');
        let part = |p: Option<&str>| {
            p.is_some_and(|p| {
                p.len() >= 2
                    && p.bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            })
        };
        return part(parts.next()) && part(parts.next()) && parts.next().is_none();
    }
    if word.contains("::") {
        return word.split("::").filter(|part| !part.is_empty()).count() >= 2
            && word.split("::").all(|part| part.bytes().all(is_name_byte));
    }
    if !word.bytes().all(|b| is_name_byte(b) || b == b'.')
        || !word.bytes().any(|b| b.is_ascii_alphabetic())
    {
        return false;
    }
    let last = word.rsplit('.').next().unwrap_or(word);
    if word.split('.').any(str::is_empty) {
        return false;
    }
    let inner = word.trim_matches('_');
    inner.len() >= 3 && inner.contains('_') && !inner.contains("__")
        || (word.starts_with("__") && word.ends_with("__") && inner.len() >= 3)
        || is_camel(last) && !is_brand(word)
}

/// Whether a word has letters of both cases with a capital after a lower-case letter.
fn is_camel(word: &str) -> bool {
    let bytes = word.as_bytes();
    let humps = bytes
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if (a.is_ascii_lowercase() || a.is_ascii_digit()) && b.is_ascii_uppercase()))
        .count();
    word.len() >= 4
        && humps >= 1
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && !bytes.first().is_some_and(u8::is_ascii_digit)
        // `VMs`, `PRs`; and a single capital at the end: `macroS`.
        && !bytes.last().is_some_and(|b| b.is_ascii_uppercase() && humps == 1)
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

fn is_dotted(name: &str) -> bool {
    name.split(['.', ':']).all(|part| part.bytes().all(is_name_byte))
        && name.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Whether a word counts as a name because it is in backticks.
fn is_quoted_name(word: &str) -> bool {
    (2..=100).contains(&word.len())
        && !PLAIN_WORDS.has(word)
        && word.bytes().any(|b| b.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_graphic())
}
