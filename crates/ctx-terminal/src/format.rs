//! Formats numbers and untrusted text for the terminal.

use std::borrow::Cow;

use ctx_core::Timestamp;

pub use crate::wrap::wrapped;
pub use ctx_core::printable::{
    escaped, escaped_lines, escaped_piece, needs_escape, shortened, thousands,
};

/// Formats a number of bytes.
pub fn bytes(n: u64) -> String {
    indicatif::DecimalBytes(n).to_string()
}

/// Formats a share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a count: `1 message`, `2 messages`, `1,000 messages`.
pub fn counted(n: usize, thing: &str) -> String {
    let number = thousands(n as u64);
    match n {
        1 => format!("{number} {thing}"),
        _ if thing.ends_with('y') => format!("{number} {}ies", &thing[..thing.len() - 1]),
        _ => format!("{number} {thing}s"),
    }
}

/// Formats a time for the user, in UTC.
pub fn minute(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).ok();
    at.map_or_else(|| "-".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Formats dollars and cents.
pub fn usd(amount: f64) -> String {
    let cents = (amount.abs() * 100.0).round();
    let sign = if amount < 0.0 { "-" } else { "" };
    format!("{sign}${}.{:02}", thousands((cents / 100.0) as u64), (cents % 100.0) as u64)
}

/// Escapes control characters in the strings of JSON, without changing its meaning.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(needs_escape) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            c if needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_readers() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!([counted(1, "entry"), counted(2, "entry")], ["1 entry", "2 entries"]);
        assert_eq!(counted(1_000, "tool result"), "1,000 tool results");
        assert_eq!([usd(0.0), usd(1_234.567), usd(-0.5)], ["$0.00", "$1,234.57", "-$0.50"]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let foreign = "a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e";
        let shown = escaped(foreign);
        assert!(!shown.chars().any(|c| c.is_control() || needs_escape(c)), "{shown}");
        assert_eq!(shown, "a\\u{1b}[2Jb\\r\\nc\\u{9b}d\\u{202e}e");
        let json = serde_json::to_string(foreign).unwrap();
        let shown = escaped_json(&json).into_owned();
        assert!(!shown.chars().any(needs_escape), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), foreign);
    }
}
