//! Renders a summary as Markdown.

use std::fmt::Write;

use super::{Field, StructuredSummary, SummaryLine, TurnPrefix};

/// The separator between the previous summary and the context of a split turn, as pi writes it.
pub const TURN_CONTEXT_HEADING: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";

impl StructuredSummary {
    /// Renders the summary as Markdown under pi's headings. Empty fields are omitted.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let mut progress = false;
        for field in Field::ALL {
            let lines = self.lines(field);
            if lines.is_empty() {
                continue;
            }
            let (heading, part) = heading(field);
            if part.is_none() || !progress {
                open(&mut out, heading);
            }
            if let Some(part) = part {
                // Under `## Progress` the first subheading follows directly.
                out.push_str(if progress { "\n\n" } else { "\n" });
                out.push_str(part);
                progress = true;
            }
            list(&mut out, field, lines);
        }
        if let Some(turn) = &self.turn {
            if out.is_empty() {
                out.push_str("No prior history.");
            }
            out.push_str(TURN_CONTEXT_HEADING);
            out.push_str(&render_turn(turn));
        }
        out
    }
}

fn heading(field: Field) -> (&'static str, Option<&'static str>) {
    match field {
        Field::Goal => ("## Goal", None),
        Field::Constraints => ("## Constraints & Preferences", None),
        Field::Done => ("## Progress", Some("### Done")),
        Field::InProgress => ("## Progress", Some("### In Progress")),
        Field::Blocked => ("## Progress", Some("### Blocked")),
        Field::Decisions => ("## Key Decisions", None),
        Field::NextSteps => ("## Next Steps", None),
        Field::CriticalContext => ("## Critical Context", None),
    }
}

fn open(out: &mut String, heading: &str) {
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str(heading);
}

fn list(out: &mut String, field: Field, lines: &[SummaryLine]) {
    for (n, line) in lines.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = match field {
            Field::Done => write!(out, "\n- [x] {line}"),
            Field::InProgress => write!(out, "\n- [ ] {line}"),
            Field::NextSteps => write!(out, "\n{}. {line}", n + 1),
            _ => write!(out, "\n- {line}"),
        };
    }
}

fn render_turn(turn: &TurnPrefix) -> String {
    let mut out = String::new();
    if !turn.original_request.is_empty() {
        out.push_str("## Original Request");
        for line in &turn.original_request {
            // Quoted, so that a heading in the user's words is not parsed as the summary's.
            out.push_str(if line.is_empty() { "\n>" } else { "\n> " });
            out.push_str(line);
        }
    }
    for (heading, lines) in [
        ("## Early Progress", &turn.early_progress),
        ("## Context for Suffix", &turn.context_for_suffix),
    ] {
        if !lines.is_empty() {
            open(&mut out, heading);
            list(&mut out, Field::CriticalContext, lines);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_summary_reads_back_as_itself() {
        let line = |text: &str| SummaryLine { text: text.into(), cites: vec!["0a".into()] };
        let mut summary = StructuredSummary {
            turn: Some(TurnPrefix {
                original_request: vec!["fix it".into(), String::new(), "## Goal".into()],
                early_progress: vec![line("read a.rs")],
                context_for_suffix: vec![line("port 8080")],
            }),
            ..StructuredSummary::default()
        };
        for field in Field::ALL {
            summary.lines_mut(field).push(line(&format!("{field:?} one")));
            summary.lines_mut(field).push(SummaryLine { text: "two".into(), cites: vec![] });
        }
        let text = summary.render();
        assert_eq!(StructuredSummary::parse(&text), summary, "{text}");
        assert!(text.contains("## Progress\n### Done\n- [x] Done one [e:0a]\n- [x] two\n\n### In"));
        assert!(text.contains("\n\n---\n\n**Turn Context (split turn):**\n\n## Original Request"));
    }

    #[test]
    fn nothing_renders_as_nothing_and_a_lone_turn_says_so() {
        assert_eq!(StructuredSummary::default().render(), "");
        let turn = TurnPrefix { original_request: vec!["hi".into()], ..TurnPrefix::default() };
        let summary = StructuredSummary { turn: Some(turn), ..StructuredSummary::default() };
        assert!(summary.render().starts_with("No prior history.\n\n---"));
    }
}
