//! Parses a summary of any form into the six fields.

use super::headings::{Place, TurnPlace, place, plain};
use super::{Field, StructuredSummary, SummaryLine, TurnPrefix};
use ctx_text::{WordList, bullet};

impl StructuredSummary {
    /// Parses a summary of any form: headings of pi, OpenClaw, CoPaw and Claude Code, English and
    /// Chinese, in Markdown or as `Name:`. Text under any other heading goes to Critical Context.
    /// `(none)` and blank lines are dropped; nothing else is lost.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.line(line));
        reader.end_item();
        reader.summary
    }
}

#[derive(Default)]
struct Reader {
    summary: StructuredSummary,
    /// Where items go; without a heading, to the critical context.
    at: Option<Place>,
    /// The level of the heading that led here; deeper unknown headings stay inside.
    level: usize,
    /// Lines of the current item.
    item: String,
    /// The check box of the current item.
    checked: Option<bool>,
    /// Whether the current line is inside a code fence.
    fenced: bool,
    /// The closing tag of a block, which is not parsed here.
    block: Option<&'static str>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let bare = line.trim();
        if let Some(close) = self.block {
            self.block = self.block.filter(|_| bare != close);
            return;
        }
        if bare.starts_with("```") {
            self.fenced = !self.fenced;
            return self.go_on(line);
        }
        if self.fenced {
            return self.go_on(line);
        }
        if self.at == Some(Place::Turn(TurnPlace::Request)) && bare.starts_with('>') {
            let said = bare.strip_prefix("> ").or_else(|| bare.strip_prefix('>')).unwrap_or(bare);
            return self.request(said);
        }
        if let Some(close) = block_end(bare) {
            self.end_item();
            self.block = Some(close);
            return;
        }
        if matches!(bare, "" | "---" | "<summary>" | "</summary>") {
            return self.end_item();
        }
        if self.heading(line, bare) {
            return;
        }
        let indented = line.starts_with([' ', '\t']);
        if indented && !self.item.is_empty() {
            return self.go_on(line);
        }
        self.end_item();
        let (words, checked) = without_marker(bare);
        self.checked = checked;
        self.item.push_str(words);
    }

    fn go_on(&mut self, line: &str) {
        if !self.item.is_empty() {
            self.item.push('\n');
        }
        self.item.push_str(line.trim_end());
    }

    /// Parses a heading. Returns false if the line is not one.
    fn heading(&mut self, line: &str, bare: &str) -> bool {
        let level = bare.chars().take_while(|&c| c == '#').count();
        if level > 0 && bare[level..].starts_with(' ') {
            self.open(bare, level);
            return true;
        }
        if line.starts_with([' ', '\t']) || bare.starts_with(['-', '+', '•', '>']) {
            return false;
        }
        if place(bare).is_some() && !bare.starts_with("* ") {
            self.open(bare, 2);
            return true;
        }
        // `Goal: words` and `**Goal**: words`.
        let colon = bare.char_indices().take(40).find(|(_, c)| matches!(c, ':' | '：'));
        if let Some((at, colon)) = colon
            && place(&bare[..at]).is_some()
        {
            self.open(&bare[..at], 2);
            let words = &bare[at + colon.len_utf8()..];
            // `**Goal:** words` closes its emphasis after the colon.
            let words = if bare.starts_with("**") { words.trim_start_matches('*') } else { words };
            let words = words.trim();
            if !words.is_empty() {
                let (words, checked) = without_marker(words);
                self.item.push_str(words);
                self.checked = checked;
            }
            return true;
        }
        false
    }

    fn open(&mut self, heading: &str, level: usize) {
        self.end_item();
        match place(heading) {
            Some(place) => {
                if matches!(place, Place::Turn(_)) {
                    self.summary.turn.get_or_insert_default();
                }
                (self.at, self.level) = (Some(place), level);
            }
            None => {
                if level <= self.level {
                    (self.at, self.level) = (None, level);
                }
                let words = plain(heading);
                if !words.is_empty() {
                    self.item = format!("**{words}**");
                    self.end_item();
                }
            }
        }
    }

    fn end_item(&mut self) {
        let item = std::mem::take(&mut self.item);
        let checked = self.checked.take();
        if is_nothing(&item) {
            return;
        }
        let field = match (self.at, checked) {
            (Some(Place::Turn(TurnPlace::Request)), _) => {
                for line in item.lines() {
                    self.request(line);
                }
                return;
            }
            (Some(Place::Turn(part)), _) => {
                let line = SummaryLine::parse(&item);
                let turn = self.turn();
                return match part {
                    TurnPlace::Early => turn.early_progress.push(line),
                    _ => turn.context_for_suffix.push(line),
                };
            }
            (Some(Place::Progress | Place::Field(Field::InProgress)), Some(true)) => Field::Done,
            (Some(Place::Progress), _) | (Some(Place::Field(Field::Done)), Some(false)) => {
                Field::InProgress
            }
            (Some(Place::Field(field)), _) => field,
            (Some(Place::Frame) | None, _) => Field::CriticalContext,
        };
        self.summary.lines_mut(field).push(SummaryLine::parse(&item));
    }

    fn turn(&mut self) -> &mut TurnPrefix {
        self.summary.turn.get_or_insert_default()
    }

    fn request(&mut self, line: &str) {
        self.turn().original_request.push(line.trim_end().to_owned());
    }
}

/// Returns the closing tag of the block that a line opens: a list of files, a rules file, open tasks.
fn block_end(line: &str) -> Option<&'static str> {
    Some(match line {
        "<read-files>" => "</read-files>",
        "<modified-files>" => "</modified-files>",
        "<open-tasks>" => "</open-tasks>",
        _ if line.starts_with("<rules-file path=\"") => "</rules-file>",
        _ => return None,
    })
}

/// Removes these blocks from a summary: they are carried over as data. A list of files that is never
/// closed ends at a heading.
#[must_use]
pub fn without_blocks(summary: &str) -> String {
    let mut block = None;
    let lines = summary.lines().filter(|line| {
        let bare = line.trim();
        if let Some(close) = block {
            let broken = line.starts_with('#') && close != "</rules-file>";
            block = block.filter(|_| bare != close && !broken);
            return broken;
        }
        block = block_end(bare);
        block.is_none()
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Whether an item only says that there is nothing.
fn is_nothing(item: &str) -> bool {
    static NOTHING: WordList = WordList::new("nothing");
    let bare = item.trim().trim_matches(|c| matches!(c, '(' | ')' | '（' | '）' | '.' | '。'));
    bare.is_empty() || NOTHING.contains(bare.to_lowercase().as_str())
}

/// Returns the words of a list item, and the state of its check box.
fn without_marker(line: &str) -> (&str, Option<bool>) {
    bullet(line).map_or((line, None), |(marker, words)| (words, marker.checked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(lines: &[SummaryLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn pi_openclaw_copaw_and_claude_code_are_read_into_the_same_fields() {
        let pi = "## Goal\nShip it\n\n## Constraints & Preferences\n- (none)\n\n## Progress\n\
                  ### Done\n- [x] one\n\n### In Progress\n- [ ] two\n\n### Blocked\n- three\n\n\
                  ## Key Decisions\n- **A**: because\n\n## Next Steps\n1. four\n\n\
                  ## Critical Context\n- five\n\n<read-files>\na.rs\n</read-files>";
        let openclaw = "## Decisions\n- **A**: because\n## Open TODOs\n- four\n\
                        ## Constraints/Rules\nNone.\n## Pending user asks\n- Ship it\n\
                        ## Exact identifiers\n- five";
        let copaw = "目标：Ship it\n约束：无\n进度：\n- [x] one\n- [ ] two\n阻塞：three\n\
                     关键决策：**A**: because\n下一步：\n1、four\n关键上下文：five";
        let claude = "Summary:\n1. Primary Request and Intent:\n   Ship it\n\n8. Current Work:\n\
                      - two\n7. Pending Tasks:\n- four\n9. Optional Next Step:\n- six";
        for (text, goal, done, doing, next) in [
            (pi, vec!["Ship it"], vec!["one"], vec!["two"], vec!["four"]),
            (openclaw, vec![], vec![], vec![], vec!["four", "Ship it"]),
            (copaw, vec!["Ship it"], vec!["one"], vec!["two"], vec!["four"]),
            (claude, vec!["Ship it"], vec![], vec!["two"], vec!["four", "six"]),
        ] {
            let summary = StructuredSummary::parse(text);
            assert_eq!(words(summary.lines(Field::Goal)), goal, "{text}");
            assert_eq!(words(summary.lines(Field::Done)), done, "{text}");
            assert_eq!(words(summary.lines(Field::InProgress)), doing, "{text}");
            assert_eq!(words(summary.lines(Field::NextSteps)), next, "{text}");
            assert!(summary.lines(Field::Constraints).is_empty(), "{text}");
        }
        for text in [pi, openclaw, copaw] {
            let summary = StructuredSummary::parse(text);
            assert_eq!(words(summary.lines(Field::Decisions)), ["**A**: because"]);
            assert_eq!(words(summary.lines(Field::CriticalContext)), ["five"]);
        }
    }

    #[test]
    fn text_without_headings_and_unknown_headings_become_critical_context() {
        let summary = StructuredSummary::parse("The user fixed it.\n\n- port 8080\n## Notes\nx");
        assert_eq!(
            words(summary.lines(Field::CriticalContext)),
            ["The user fixed it.", "port 8080", "**Notes**", "x"]
        );
        let inside = StructuredSummary::parse("## Goal\na\n### Phase 1\nb\n## Other\nc");
        assert_eq!(words(inside.lines(Field::Goal)), ["a", "**Phase 1**", "b"]);
    }

    #[test]
    fn what_is_indented_or_fenced_stays_with_its_item() {
        let text = "## Critical Context\n- run:\n  - a\n  - b\n```\n## Goal\n```\n- c";
        let summary = StructuredSummary::parse(text);
        assert_eq!(
            words(summary.lines(Field::CriticalContext)),
            ["run:\n  - a\n  - b\n```\n## Goal\n```", "c"]
        );
        assert!(summary.lines(Field::Goal).is_empty());
    }

    #[test]
    fn hostile_text_is_read_in_linear_time() {
        for unit in ["#", "# ", "- [", "[e:1]", "```\n", "：", "\u{0}\n", "> ", "1. ", "**"] {
            let text = unit.repeat(100_000);
            let _ = StructuredSummary::parse(&text).render();
        }
    }
}
