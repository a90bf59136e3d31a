//! Normalises the many spellings of a model name.
//!
//! `claude-opus-4-5`, `Claude Opus 4.5`, `anthropic/claude-opus-4.5`, `claude-opus-4-5@20251101`
//! and `us.anthropic.claude-opus-4-5-20251101-v1:0` all denote the same model.

use std::sync::LazyLock;

use regex::Regex;

/// Maximum length of a name, which bounds the work.
const LONGEST: usize = 128;

/// The region and the vendor with which cloud providers prefix a name.
static PREFIXES: LazyLock<Regex> = LazyLock::new(|| {
    let regions = "us|eu|apac|jp|au|global";
    let vendors = "anthropic|openai|google|mistral|deepseek|qwen|moonshot|zai";
    compiled(&format!(r"^(?:(?:{regions}|{vendors})\.){{0,2}}"))
});

/// What may be at the end of a name, in the order in which it is stripped.
static ENDS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    let variant = r"(?:-v[12])?[:\[].*$";
    let date = r"[-@](?:[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})$";
    let stage = "-(?:latest|preview|exp)$";
    // `-2512` (year and month) or `-0905` (month and day).
    let month = "-[0-9]{4}$";
    [variant, date, stage, month, date].map(compiled)
});

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test uses all patterns of this file")
}

/// Returns the form used to compare names: lower case, without the provider, dots and spaces as
/// dashes.
pub(crate) fn normal(name: &str) -> String {
    let name = name.trim();
    let name = name.rsplit('/').next().unwrap_or(name);
    let lower: String = name.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    PREFIXES.replace(&lower, "").replace(['.', '_', ' '], "-")
}

/// Returns increasingly loose readings of a normalised name: unchanged; without a variant
/// (`:batch`, `[1m]`), a version date and a word such as `latest`.
pub(crate) fn readings(normal: &str) -> Vec<&str> {
    let mut all = vec![normal];
    let mut rest = normal;
    for end in ENDS.iter() {
        if let Some(found) = end.find(rest) {
            rest = &rest[..found.start()];
            all.push(rest);
        }
    }
    all
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
