//! Summaries without a model: the most important lines, each with its source.

use std::collections::HashSet;

use crate::said::{Content, clean_line, clip, floor};

/// The kinds of lines, the most important first, each with its share of the space in percent.
/// Unused space of a kind is distributed afterwards.
const KINDS: [(&str, usize); 6] =
    [("user", 35), ("summary", 25), ("error", 15), ("decided", 15), ("file", 5), ("said", 5)];

/// Maximum number of bytes of a line's text.
const LINE: usize = 220;

/// Words that mark an assistant's decision.
const DECIDING: [&str; 10] = [
    "decided",
    "because",
    "instead",
    "chose",
    "will not",
    "must ",
    "never ",
    "root cause",
    "the fix",
    "turned out",
];

/// Words that mark a failure.
const FAILING: [&str; 7] =
    ["error", "failed", "panicked", "exception", "fatal", "not found", "denied"];

/// Summarises messages, in at most `bytes`.
pub(crate) fn of_messages(messages: &[Content], bytes: usize) -> String {
    let mut seen = HashSet::new();
    let mut lines = Vec::new();
    for message in messages {
        let mut add = |kind: &str, text: &str| {
            let text = clip(&clean_line(text), LINE);
            // Equal lines are listed once, because agents read a file repeatedly.
            if !text.is_empty() && seen.insert(text.clone()) {
                lines.push(format!("- {kind}: {text} [e:{}]", message.cited));
            }
        };
        match message.role.as_str() {
            "user" => add("user", &message.text),
            "assistant" => {
                let deciding = sentences(&message.text).find(|s| mentions(s, &DECIDING));
                match deciding {
                    Some(sentence) => add("decided", sentence),
                    None => add("said", sentences(&message.text).next().unwrap_or_default()),
                }
            }
            "toolResult" => {
                let failure = message.text.lines().find(|line| mentions(line, &FAILING));
                match failure {
                    Some(line) => add("error", line),
                    None if message.failed => add("error", &message.text),
                    None => {}
                }
            }
            // Another program wrote this summary: add all its lines.
            _ => message.text.lines().for_each(|line| add("summary", line)),
        }
        for (tool, file) in &message.calls {
            if let Some(file) = file {
                add("file", &format!("{tool} {file}"));
            }
        }
    }
    pick(&lines, bytes)
}

/// Summarises summaries, in at most `bytes`.
pub(crate) fn of_summaries(bodies: &[&str], bytes: usize) -> String {
    let mut seen = HashSet::new();
    let lines: Vec<String> = bodies
        .iter()
        .flat_map(|body| body.lines())
        .filter(|line| !line.trim().is_empty() && seen.insert(*line))
        .map(|line| clip(line, 2 * LINE))
        .collect();
    pick(&lines, bytes)
}

/// Returns the lines that fit, in their order. First every kind gets its share, then the rest goes
/// to the most important kinds. Within a kind, the newest lines are taken first.
fn pick(lines: &[String], bytes: usize) -> String {
    let mut taken = vec![false; lines.len()];
    let mut left = bytes;
    let ranks: Vec<usize> = lines.iter().map(|line| rank(line)).collect();
    for shared in [true, false] {
        for (kind, (_, percent)) in KINDS.iter().enumerate() {
            let mut share = if shared { left.min(bytes * percent / 100) } else { left };
            for (at, line) in lines.iter().enumerate().rev() {
                let size = line.len() + 1;
                if ranks[at] == kind && !taken[at] && size <= share {
                    taken[at] = true;
                    share -= size;
                    left -= size;
                }
            }
        }
    }
    let kept = lines.iter().zip(&taken).filter(|(_, taken)| **taken);
    kept.map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("\n")
}

/// Returns the position of a line's kind in [`KINDS`]. Lines of a model count as decisions.
fn rank(line: &str) -> usize {
    let kind = line.strip_prefix("- ").and_then(|line| line.split_once(": ")).map(|(kind, _)| kind);
    KINDS.iter().position(|(known, _)| kind == Some(known)).unwrap_or(3)
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split_inclusive(". "))
        .map(str::trim)
        .filter(|sentence| sentence.len() > 3)
}

fn mentions(text: &str, words: &[&str]) -> bool {
    let text = text[..floor(text, 1_000)].to_lowercase();
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(id: &str, role: &str, text: &str) -> Content {
        Content { cited: id.into(), role: role.into(), text: text.into(), ..Content::default() }
    }

    #[test]
    fn excerpts_have_asks_errors_decisions_and_files_with_their_source() {
        let reading = Content {
            calls: vec![("read".into(), Some("src/a.rs".into()))],
            ..said("3", "assistant", "I looked around. I chose a table because it is fast. Done.")
        };
        let text = of_messages(
            &[
                said("1", "user", "please   fix\nthe parser"),
                said("2", "toolResult", "Compiling\nerror[E0382]: moved\nmore"),
                reading.clone(),
                Content { cited: "4".into(), ..reading },
                said("5", "toolResult", "all well"),
            ],
            2_000,
        );
        assert_eq!(
            text,
            "- user: please fix the parser [e:1]\n- error: error[E0382]: moved [e:2]\n\
             - decided: I chose a table because it is fast. [e:3]\n- file: read src/a.rs [e:3]"
        );
    }

    #[test]
    fn lines_that_do_not_fit_are_omitted_and_asks_last_of_all() {
        let many: Vec<Content> = (0..200)
            .map(|n| match n % 2 {
                0 => said(&n.to_string(), "user", &format!("ask for ü number {n}")),
                _ => said(&n.to_string(), "assistant", &format!("talk number {n} and so on")),
            })
            .collect();
        for bytes in [0, 10, 100, 500, 2_000] {
            let text = of_messages(&many, bytes);
            assert!(text.len() <= bytes, "{bytes}");
            let asks = text.matches("- user").count();
            assert!(asks >= text.matches("- said").count(), "{text}");
            assert!(bytes < 100 || asks > 0);
        }
        let folded = of_summaries(&[&of_messages(&many, 2_000), "- a note\n\n- a note"], 300);
        assert!(folded.len() <= 300 && folded.contains("- a note"), "{folded}");
    }
}
