//! The answer of a model that follows its instructions: a summary made of the prompt's own lines,
//! so that an audit finds everything it should find, and no unsupported claims.

use std::collections::HashSet;

use ctx_core::{Chars, text};

/// Maximum characters of a line of the summary.
const LINE_CHARS: u32 = 240;
/// Maximum characters of the summary, unless the request allows less.
const MAX_CHARS: usize = 16_000;

const HEADINGS: [&str; 6] = [
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
];

/// Words that assign a line to a section; the first matching row wins.
const WORDS: [(usize, &[&str]); 5] = [
    (1, &["must", "never", "always", "don't", "do not", "不要", "必须", "务必", "禁止", "别"]),
    (3, &["decided", "decision", "because", "instead of", "chose", "决定", "因为", "改用"]),
    (4, &["todo", "next step", "remaining", "still open", "待办", "下一步"]),
    (2, &["done", "fixed", "added", "created", "finished", "完成", "修复"]),
    (0, &["please", "i want", "we need", "can you", "let's", "请", "我想", "帮我"]),
];
/// The section for lines with exact values.
const EXACT: usize = 5;
/// The section for all lines if no line matches a section.
const DONE: usize = 2;

/// Returns a summary of a prompt in at most `max` characters, in six sections, that contains only
/// lines of the prompt and cites its sources. If not everything fits, the newest lines are kept.
pub fn faithful_summary(prompt: &str, max: Chars) -> String {
    let most = (max.0 as usize).min(MAX_CHARS);
    let frame: usize = HEADINGS.iter().map(|heading| heading.len() + "\n(none)\n\n".len()).sum();
    let mut room = most.saturating_sub(frame);
    let mut sections: [Vec<String>; 6] = Default::default();
    let mut seen = HashSet::new();
    let material = material(prompt);
    // If no line belongs to a section, all lines go to `DONE`.
    let otherwise = match material.iter().any(|(line, _)| section_of(line).is_some()) {
        true => None,
        false => Some(DONE),
    };
    for (line, source) in material.into_iter().rev() {
        let section = section_of(line).or(otherwise.filter(|_| is_news(line)));
        let Some(section) = section.and_then(|at| sections.get_mut(at)) else { continue };
        let words = text::head(line, Chars(LINE_CHARS)).trim();
        let cited = source.map(|id| format!(" [e:{id}]")).unwrap_or_default();
        let shown = format!("- {words}{cited}");
        let cost = shown.chars().count() + 1;
        if cost > room || !seen.insert(words) {
            continue;
        }
        room -= cost;
        section.push(shown);
    }
    let mut summary = String::new();
    for (heading, mut lines) in HEADINGS.iter().zip(sections) {
        lines.reverse();
        let body = if lines.is_empty() { "(none)".to_owned() } else { lines.join("\n") };
        summary.push_str(&format!("{heading}\n{body}\n\n"));
    }
    let most = Chars(u32::try_from(most).unwrap_or(u32::MAX));
    text::head(summary.trim_end(), most).to_owned()
}

/// Returns the lines to summarise, without leading markers, each with its entry if the prompt names
/// one. If parts of the prompt are enclosed in tags (`<conversation>`), the rest is instructions
/// and is ignored.
fn material(prompt: &str) -> Vec<(&str, Option<&str>)> {
    let mut inside = Vec::new();
    let mut outside = Vec::new();
    let mut open: Option<&str> = None;
    let mut source = None;
    for line in prompt.lines() {
        let tag = line.trim().strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        match (tag, open) {
            (Some(name), None) if is_name(name) => open = Some(name),
            (Some(end), Some(name)) if end.strip_prefix('/') == Some(name) => open = None,
            _ => {
                let (line, cited) = citation(line);
                source = cited.or(source);
                let line = line.trim().trim_start_matches(['-', '*', '#', '>']).trim_start();
                let lines = if open.is_some() { &mut inside } else { &mut outside };
                lines.push((line, source));
            }
        }
    }
    if inside.is_empty() { outside } else { inside }
}

fn is_name(tag: &str) -> bool {
    !tag.is_empty() && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Splits off the `[e:ID]` at the beginning or end of a line; returns the line and the id.
fn citation(line: &str) -> (&str, Option<&str>) {
    let trimmed = line.trim();
    if let Some((id, rest)) = trimmed.strip_prefix("[e:").and_then(|rest| rest.split_once(']')) {
        return (rest, Some(id));
    }
    let last = trimmed.strip_suffix(']').and_then(|line| line.rsplit_once("[e:"));
    last.map_or((line, None), |(rest, id)| (rest, Some(id)))
}

/// Whether a line has content; headings of an earlier summary have none.
fn is_news(line: &str) -> bool {
    !line.is_empty() && !HEADINGS.iter().any(|heading| heading.ends_with(line))
}

/// Returns the section of a line; `None` if it is not important.
fn section_of(line: &str) -> Option<usize> {
    if !is_news(line) {
        return None;
    }
    let lower = line.to_lowercase();
    let named = WORDS.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word)));
    named.map(|row| row.0).or_else(|| is_exact(line).then_some(EXACT))
}

/// Whether a line contains a path, a URL, a number or quoted code.
fn is_exact(line: &str) -> bool {
    line.contains('`') || line.contains('/') || line.chars().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Summarise this. You must use headings.\n<conversation>\n\
        [e:a1] User: please make src/parser.rs faster, and never touch vendor/\n\
        [e:a2] Assistant: I looked at it.\nIt decided against a table because of memory.\n\
        [e:a3] Tool: error[E0382] at src/parser.rs:42\n</conversation>\nNow write it.";

    #[test]
    fn the_summary_contains_important_lines_with_their_sources() {
        expect_test::expect![[r#"
            ## Goal
            (none)

            ## Constraints & Preferences
            - User: please make src/parser.rs faster, and never touch vendor/ [e:a1]

            ## Progress
            (none)

            ## Key Decisions
            - It decided against a table because of memory. [e:a2]

            ## Next Steps
            (none)

            ## Critical Context
            - Tool: error[E0382] at src/parser.rs:42 [e:a3]"#]]
        .assert_eq(&faithful_summary(PROMPT, Chars(10_000)));
    }

    #[test]
    fn a_summary_never_exceeds_its_length() {
        let long = "请修复 src/错误.rs 第 42 行 😀\n".repeat(2_000);
        for max in [0, 1, 50, 200, 1_000] {
            for prompt in [PROMPT, &long, "<a>\n<b>\n[e:", ""] {
                assert!(
                    faithful_summary(prompt, Chars(max as u32)).encode_utf16().count() <= max,
                    "{max}"
                );
            }
        }
    }
}
