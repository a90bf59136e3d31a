//! Normalises the many spellings of a model name.
//!
//! `claude-opus-4-5`, `Claude Opus 4.5`, `anthropic/claude-opus-4.5`, `claude-opus-4-5@20251101`
//! and `us.anthropic.claude-opus-4-5-20251101-v1:0` all denote the same model.

/// Maximum length of a name, which bounds the work.
const LONGEST: usize = 128;

/// The regions and vendors with which cloud providers prefix a name, each followed by a dot.
const DOTTED_PREFIXES: [&str; 14] = [
    "us.",
    "eu.",
    "apac.",
    "jp.",
    "au.",
    "global.",
    "anthropic.",
    "openai.",
    "google.",
    "mistral.",
    "deepseek.",
    "qwen.",
    "moonshot.",
    "zai.",
];

/// Returns the form used to compare names: lower case, without the provider, dots and spaces as
/// dashes.
pub(crate) fn normal(name: &str) -> String {
    let name = name.trim();
    let name = name.rsplit('/').next().unwrap_or(name);
    let lower: String = name.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    let mut rest = lower.as_str();
    // At most a region and a vendor.
    for _ in 0..2 {
        rest = DOTTED_PREFIXES.iter().find_map(|p| rest.strip_prefix(p)).unwrap_or(rest);
    }
    rest.chars().map(|c| if matches!(c, '.' | '_' | ' ') { '-' } else { c }).collect()
}

/// Returns increasingly loose readings of a normalised name: unchanged; without a variant
/// (`:batch`, `[1m]`), a version date and a word such as `latest`.
pub(crate) fn readings(normal: &str) -> Vec<&str> {
    let mut all = vec![normal];
    let mut rest = normal;
    if let Some(end) = rest.find([':', '[']) {
        rest = &rest[..end];
        rest = rest.strip_suffix("-v1").or_else(|| rest.strip_suffix("-v2")).unwrap_or(rest);
        all.push(rest);
    }
    for strip in [strip_date, strip_stage, strip_month, strip_date] {
        if let Some(shorter) = strip(rest) {
            rest = shorter;
            all.push(rest);
        }
    }
    all
}

/// Strips a trailing `-20251101`, `@20251101` or `-2025-11-01`.
fn strip_date(name: &str) -> Option<&str> {
    let digits = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
    let (head, last) = name.rsplit_once(['-', '@'])?;
    if digits(last, 8) {
        return Some(head);
    }
    let (head, month) = head.rsplit_once('-')?;
    let (head, year) = head.rsplit_once(['-', '@'])?;
    (digits(last, 2) && digits(month, 2) && digits(year, 4)).then_some(head)
}

/// Strips a trailing release stage.
fn strip_stage(name: &str) -> Option<&str> {
    ["-latest", "-preview", "-exp"].iter().find_map(|stage| name.strip_suffix(stage))
}

/// Strips a trailing version such as `-2512` (year and month) or `-0905` (month and day).
fn strip_month(name: &str) -> Option<&str> {
    let (head, last) = name.rsplit_once('-')?;
    (last.len() == 4 && last.bytes().all(|b| b.is_ascii_digit())).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_model_under_many_names() {
        for name in [
            "claude-opus-4-5",
            "Claude Opus 4.5",
            "anthropic/claude-opus-4.5",
            "claude-opus-4-5-20251101",
            "claude-opus-4-5@20251101",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "anthropic.claude-opus-4-5",
            "vercel/anthropic/claude_opus_4.5",
            "claude-opus-4-5[1m]",
            "claude-opus-4-5-latest",
            "  claude-opus-4.5  ",
            "claude-opus-4-5-2025-11-01",
        ] {
            let normal = normal(name);
            assert!(readings(&normal).contains(&"claude-opus-4-5"), "{name}: {normal}");
        }
    }

    #[test]
    fn strict_readings_come_first() {
        assert_eq!(readings("gpt-4o-2024-05-13"), ["gpt-4o-2024-05-13", "gpt-4o"]);
        assert_eq!(
            readings("gemini-3-flash-preview"),
            ["gemini-3-flash-preview", "gemini-3-flash"]
        );
        assert_eq!(readings("gpt-4-1"), ["gpt-4-1"]);
    }

    #[test]
    fn nonsense_is_read_without_harm() {
        for name in ["", "-", "@", "/", "::::", "[", "é-20251101", "－", "-20251101", "a-2025-1-01"]
        {
            readings(&normal(name));
        }
        assert!(normal(&"x.".repeat(1 << 20)).len() <= LONGEST * 4);
    }
}
