//! Shortens a summary without a model.

use std::collections::BinaryHeap;

use ctx_core::{Chars, Counter, Tokens, text};

/// Shortens `summary` to at most `max` tokens. It removes whole lines, always the last one of the
/// section that is currently longest, so that no section loses all its lines to another. A line
/// that alone takes a quarter of the budget is clipped.
pub(crate) fn trimmed(summary: &str, max: Tokens, counter: &Counter) -> String {
    if counter.text(summary) <= max {
        return summary.to_owned();
    }
    // The sum of the lines is at least the count of the whole text, unless the vocabulary has
    // tokens across line breaks; hence the check, and another round with less.
    let mut limit = max;
    for _ in 0..8 {
        let text = without_last_lines(summary, limit, counter);
        if counter.text(&text) <= max {
            return text;
        }
        limit = limit.scale(0.75);
    }
    clipped(summary, max, counter).to_owned()
}

/// Returns the longest prefix of about `max` tokens at most, ending between words if possible.
fn clipped<'a>(line: &'a str, max: Tokens, counter: &Counter) -> &'a str {
    let mut chars = counter.most_chars(max).0;
    loop {
        let start = text::head(line, Chars(chars));
        if counter.text(start) <= max {
            if start.len() == line.len() {
                return start;
            }
            let end = start.rfind(char::is_whitespace).filter(|&end| end > start.len() / 2);
            return start.get(..end.unwrap_or(start.len())).unwrap_or(start).trim_end();
        }
        chars = chars / 4 * 3;
    }
}

fn without_last_lines(summary: &str, max: Tokens, counter: &Counter) -> String {
    let quarter = max.scale(0.25);
    let mut sections = vec![Section::default()];
    for line in summary.lines() {
        let line =
            if counter.text(line) > quarter { clipped(line, quarter, counter) } else { line };
        // Its line break is at worst a token of its own.
        let tokens = counter.text(line) + Tokens(1);
        if line.starts_with('#') {
            sections.push(Section { heading: Some((line, tokens)), ..Section::default() });
        } else if let Some(section) = sections.last_mut() {
            section.size += tokens;
            section.lines.push((line, tokens));
        }
    }
    let mut size: Tokens = sections.iter().map(Section::total).sum();
    let mut longest: BinaryHeap<_> =
        sections.iter().enumerate().map(|(at, section)| (section.size, at)).collect();
    while size > max {
        let Some((_, at)) = longest.pop() else { break };
        let Some(section) = sections.get_mut(at) else { break };
        let Some((_, tokens)) = section.lines.pop() else { continue };
        section.size -= tokens;
        size -= tokens;
        longest.push((section.size, at));
    }
    let mut lines: Vec<&str> = Vec::new();
    for section in &sections {
        let heading = section.heading.filter(|(_, tokens)| size <= max || tokens.0 <= max.0 / 8);
        lines.extend(heading.map(|(line, _)| line));
        lines.extend(section.lines.iter().map(|(line, _)| line));
    }
    // A code fence whose end was removed would swallow the rest.
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    if lines.iter().filter(|line| is_fence(line)).count() % 2 == 1
        && let Some(at) = lines.iter().rposition(is_fence)
    {
        lines.remove(at);
    }
    lines.join("\n").trim_end().to_owned()
}

/// A heading and its lines.
#[derive(Default)]
struct Section<'a> {
    heading: Option<(&'a str, Tokens)>,
    lines: Vec<(&'a str, Tokens)>,
    size: Tokens,
}

impl Section<'_> {
    fn total(&self) -> Tokens {
        self.size + self.heading.map_or(Tokens::ZERO, |(_, tokens)| tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: usize) -> String {
        let body = |name: &str, lines: usize| {
            (0..lines).map(|n| format!("- {name} number {n} was said\n")).collect::<String>()
        };
        format!(
            "## Goal\n{}\n## Progress\n{}\n## Next Steps\n{}",
            body("goal", 1),
            body("step", lines),
            body("next", 3)
        )
    }

    #[test]
    fn every_section_keeps_something_and_the_longest_gives_first() {
        let counter = Counter::default();
        let short = trimmed(&text(500), Tokens(200), &counter);
        assert!(counter.text(&short) <= Tokens(200));
        for kept in
            ["## Goal\n- goal number 0", "- step number 0", "## Next Steps\n- next number 0"]
        {
            assert!(short.contains(kept), "{short}");
        }
        assert!(short.contains("- next number 2 was said"), "the short section is whole");
        assert!(short.lines().all(|line| line.is_empty() || text(500).contains(line)), "{short}");
        assert_eq!(trimmed(&text(2), Tokens(200), &counter), text(2));
    }

    #[test]
    fn the_result_fits_whatever_the_text_and_the_room() {
        let texts = [
            text(50),
            "中文没有空格".repeat(2_000),
            "x".repeat(100_000),
            "a\n".repeat(50_000),
            "# h\n".repeat(1_000),
            "```\n".repeat(1_001),
            String::new(),
        ];
        for &kind in ctx_core::CounterKind::ALL {
            let counter = Counter::new(kind);
            for text in &texts {
                for max in [0, 1, 2, 7, 30, 100, 1_000] {
                    let short = trimmed(text, Tokens(max), &counter);
                    assert!(counter.text(&short) <= Tokens(max), "{kind} {max}: {short:?}");
                    let fences = short.lines().filter(|line| line.starts_with("```")).count();
                    assert!(fences % 2 == 0 || short.len() < 10, "{kind} {max}");
                }
            }
        }
    }
}
