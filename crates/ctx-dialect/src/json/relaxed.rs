//! Converts JSON5 and slightly damaged JSON to strict JSON.

use ctx_core::text::Slice;
use std::fmt::Write as _;

use serde_json::value::RawValue;

/// Converts JSON5 or slightly damaged JSON to strict JSON: removes comments and surplus commas,
/// double-quotes keys and strings, normalises numbers, turns `NaN`, `Infinity` and `undefined` into
/// `null`, escapes control characters in strings. Returns `None` for anything else.
///
/// A single pass without recursion. Strict JSON changes only in white space.
#[must_use]
pub fn relaxed(text: &str) -> Option<String> {
    let mut writer = Strict { text, at: 0, out: String::with_capacity(text.len()), comma: false };
    writer.run()?;
    serde_json::from_str::<&RawValue>(&writer.out).is_ok().then_some(writer.out)
}

struct Strict<'t> {
    text: &'t str,
    at: usize,
    out: String,
    /// A comma was read; it is written only if another element follows.
    comma: bool,
}

impl<'t> Strict<'t> {
    fn rest(&self) -> &'t str {
        self.text.slice(self.at..)
    }

    fn run(&mut self) -> Option<()> {
        loop {
            self.at = skip_trivia(self.text, self.at)?;
            let Some(c) = self.rest().chars().next() else { return Some(()) };
            if !matches!(c, ']' | '}' | ',') && std::mem::take(&mut self.comma) {
                self.out.push(',');
            }
            match c {
                ',' => self.comma = true,
                '{' | '[' | ':' => self.out.push(c),
                '}' | ']' => {
                    self.comma = false;
                    self.out.push(c);
                }
                '"' | '\'' => {
                    self.string(c)?;
                    continue;
                }
                _ => {
                    self.word()?;
                    continue;
                }
            }
            self.at += c.len_utf8();
        }
    }

    fn string(&mut self, quote: char) -> Option<()> {
        self.at += 1;
        self.out.push('"');
        loop {
            let rest = self.text.get(self.at..)?;
            let plain = rest.find(|c| matches!(c, '"' | '\'' | '\\') || c < ' ')?;
            let (before, special) = rest.split_at(plain);
            self.out.push_str(before);
            self.at += plain;
            let c = special.chars().next()?;
            match c {
                '\\' => {
                    self.escape()?;
                    continue;
                }
                c if c == quote => {
                    self.at += 1;
                    self.out.push('"');
                    return Some(());
                }
                '"' => self.out.push_str("\\\""),
                '\'' => self.out.push(c),
                // A string cannot span lines: the closing quote is missing.
                '\n' | '\r' => return None,
                control => self.unicode(control),
            }
            self.at += 1;
        }
    }

    fn unicode(&mut self, c: char) {
        // Writing to a string does not fail.
        let _ = write!(self.out, "\\u{:04x}", u32::from(c));
    }

    /// Reads an escape sequence.
    fn escape(&mut self) -> Option<()> {
        let c = self.text.get(self.at + 1..)?.chars().next()?;
        let after = self.at + 1 + c.len_utf8();
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'v' => self.unicode('\u{B}'),
            '0' => self.unicode('\0'),
            'x' => {
                let code = self.text.get(after..after + 2)?;
                self.unicode(char::from(u8::from_str_radix(code, 16).ok()?));
                self.at = after + 2;
                return Some(());
            }
            '\r' if self.text[after..].starts_with('\n') => {
                self.at = after + 1;
                return Some(());
            }
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => {}
            other if other < ' ' => self.unicode(other),
            other => self.out.push(other),
        }
        self.at = after;
        Some(())
    }

    /// Reads an unquoted key, a keyword or a number.
    fn word(&mut self) -> Option<()> {
        let rest = self.rest();
        let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '+' | '-' | '.');
        let len = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let word = rest.get(..len).filter(|word| !word.is_empty())?;
        let value = match word.trim_start_matches(['+', '-']) {
            "NaN" | "Infinity" | "undefined" => Some("null".to_owned()),
            "true" | "false" | "null" => Some(word.to_owned()),
            digits if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                Some(number(word))
            }
            _ => None,
        };
        // Two words separated only by white space stay separate.
        if self.out.ends_with(|c: char| c.is_alphanumeric()) {
            self.out.push(' ');
        }
        let next = skip_trivia(self.text, self.at + len)?;
        let is_key = self.text[next..].starts_with(':') && !word.contains(['+', '-', '.']);
        match (is_key, value) {
            (true, _) => {
                let key = super::quote(word);
                self.out.push_str(&key);
            }
            (false, value) => self.out.push_str(&value?),
        }
        self.at += len;
        Some(())
    }
}

/// Converts a JSON5 number to JSON. Validity is checked later, on the result.
fn number(word: &str) -> String {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return match u64::from_str_radix(hex, 16) {
            Ok(n) => format!("{sign}{n}"),
            Err(_) => word.to_owned(),
        };
    }
    let lead = if digits.starts_with('.') { "0" } else { "" };
    let (whole, exponent) = match digits.find(['e', 'E']) {
        Some(at) => digits.split_at(at),
        None => (digits, ""),
    };
    let tail = if whole.ends_with('.') { "0" } else { "" };
    format!("{sign}{lead}{whole}{tail}{exponent}")
}

/// Returns the first position at or after `at` that is neither white space nor a comment; `None` if
/// a comment is not closed.
#[must_use]
pub fn skip_trivia(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.slice(at..);
        let blank = |c: char| c.is_whitespace() || c == '\u{FEFF}';
        let trimmed = rest.trim_start_matches(blank);
        at += rest.len() - trimmed.len();
        at += match trimmed.get(..2) {
            Some("//") => trimmed.find('\n').unwrap_or(trimmed.len()),
            Some("/*") => trimmed.find("*/")? + 2,
            _ => return Some(at),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_json_is_unchanged() {
        for json in [r#"{"a":[1.50,-2e9,"\u00e9\\",null,true,{}]}"#, r#""x""#, "[]", "5"] {
            assert_eq!(relaxed(json).as_deref(), Some(json));
        }
    }

    #[test]
    fn json5_becomes_json() {
        for (json5, json) in [
            ("{a:1,$b_2:'x',}", r#"{"a":1,"$b_2":"x"}"#),
            ("// c\n[1,/* , */2,]", "[1,2]"),
            (r#"['it\'s "so"','a\x41\v\0']"#, r#"["it's \"so\"","aA\u000b\u0000"]"#),
            ("['a\\\nb']", r#"["ab"]"#),
            ("[+1,.5,5.,-0x10,1.e3]", "[1,0.5,5.0,-16,1.0e3]"),
            ("[NaN,-Infinity,undefined]", "[null,null,null]"),
            ("{true:1,/*x*/null /*y*/ : 2}", r#"{"true":1,"null":2}"#),
            ("\u{FEFF}{'é':1}\u{A0}", r#"{"é":1}"#),
            ("{\"a\":\"x\ty\"}", r#"{"a":"x\u0009y"}"#),
        ] {
            // `\u0041` is equivalent to `A`.
            let found = relaxed(json5).map(|found| found.replace("\\u0041", "A"));
            assert_eq!(found.as_deref(), Some(json), "{json5}");
        }
    }

    #[test]
    fn text_that_is_neither_json_nor_json5_is_refused() {
        for text in ["{a:1 b}", "[1 2]", "{a", "'a", "'a\nb'", "[/*", "{a:b}", "[-]", "", "[01]"] {
            assert_eq!(relaxed(text), None, "{text}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}1{}", "{a:[".repeat(100_000), "]}".repeat(100_000));
        assert!(relaxed(&deep).unwrap().starts_with(r#"{"a":[{"a":"#));
    }
}
