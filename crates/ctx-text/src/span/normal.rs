//! Compares different spellings of the same token.

use super::date::{day_len, is_time};
use super::number::number;
use super::path::split_line;
use crate::{SpanKind, collapsed};
use ctx_core::text::Slice;

/// A form that is equal for different spellings: `500ms` and `500 ms`, `exit code 1` and `exited
/// with code 1`, `./src/a.rs` and `src/a.rs:42`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NormalForm {
    kind: SpanKind,
    text: String,
}

/// Returns the normal form of a token.
pub fn normal_form(kind: SpanKind, text: &str) -> NormalForm {
    let text = match kind {
        SpanKind::Path => {
            let bare = split_line(text).0.trim_end_matches('/');
            bare.strip_prefix("./").unwrap_or(bare).to_owned()
        }
        SpanKind::Url => text.trim_end_matches('/').to_owned(),
        SpanKind::Number if day_len(text) == Some(text.len()) => {
            collapsed(&text.to_ascii_lowercase().replace([',', '.'], ""))
        }
        SpanKind::Number if is_time(text) => text.to_owned(),
        SpanKind::Number => match number(text) {
            Some(number) => format!("{} {}", number.value, number.unit),
            None => text.to_owned(),
        },
        SpanKind::ErrorCode => error(text),
        SpanKind::Id => id(text),
        SpanKind::CodeName => collapsed(text.trim_end_matches("()")),
    };
    NormalForm { kind, text }
}

/// Returns the digits at the end of a text.
pub fn trailing_digits(text: &str) -> &str {
    let start = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    text.slice(start..)
}

fn error(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let digits = trailing_digits(&lower);
    if digits.is_empty() {
        return text.to_owned();
    }
    if lower.starts_with("exit") || lower.starts_with("退出码") {
        return format!("exit {digits}");
    }
    if lower.starts_with("http") || lower.starts_with("status") || digits.len() == lower.len() {
        return format!("http {digits}");
    }
    if ["code", "err", "sqlstate", "错误"].iter().any(|lead| lower.starts_with(lead))
        && lower.contains([' ', ':', '=', '码'])
    {
        return format!("code {digits}");
    }
    text.to_owned()
}

fn id(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    if lower.contains([' ', ':', '=', '#']) && !lower.contains(['.', '@', '-']) {
        let digits = trailing_digits(&lower);
        let lead = lower.slice(..lower.len() - digits.len());
        let lead = lead.trim_end_matches([' ', ':', '=', '#', '：']);
        if !digits.is_empty() {
            return match lead {
                "" | "issue" | "pr" | "mr" | "bug" | "ticket" => format!("#{digits}"),
                "端口" | "端口号" | "端口是" | "端口为" => format!("port {digits}"),
                _ => format!("{lead} {digits}"),
            };
        }
    }
    match lower.strip_prefix('v') {
        Some(version) if version.starts_with(|c: char| c.is_ascii_digit()) => version.to_owned(),
        _ => lower,
    }
}

impl NormalForm {
    /// Returns the form's text.
    pub fn text(&self) -> &str {
        &self.text
    }
}
