//! Finds open lines of the previous summary that have been completed or replaced.

use ctx_text::{Signal, WordList, sentences};
use std::collections::HashSet;

use ctx_core::{Block, Role};

use super::ExtractInput;
use super::note::{Note, words};
use super::turns::Turn;
use crate::Field;
use ctx_facts::command::{self, Purpose};
use ctx_facts::modified_files;

/// The number of newest turns examined, and the maximum length examined in each.
const TURNS: usize = 300;
const LONGEST: usize = 600;

/// The number of announced steps that make a plan, rather than only the next step.
const PLAN: usize = 2;

/// What ended since the previous summary.
pub(super) struct Ended {
    /// The words of each completed turn: the request, the files changed, the commits.
    turns: Vec<HashSet<String>>,
    /// Whether it was reported since that everything is done.
    everything: bool,
    /// Whether there is a newer plan.
    planned: bool,
}

impl Ended {
    pub(super) fn of(job: &ExtractInput<'_>, turns: &[Turn], notes: &[Note]) -> Self {
        let over = turns.split_last().map_or(&[][..], |(_, over)| over);
        let recent = over.iter().rev().take(TURNS).filter(|turn| turn.asked_at.is_some());
        let steps = notes.iter().filter(|n| n.field == Field::NextSteps);
        Self {
            turns: recent.map(|turn| taken_up(job, turn)).collect(),
            everything: job.messages.iter().any(|said| {
                said.message.role == Role::Assistant && says_all(&said.message.plain_text())
            }),
            planned: steps.take(PLAN).count() == PLAN,
        }
    }

    /// Whether an open line can be dropped. With `compare`, its words are compared with those of
    /// each turn.
    pub(super) fn holds(&self, field: Field, open: &HashSet<String>, compare: bool) -> bool {
        // Work that waits for someone else is not done when everything else is.
        field != Field::Blocked
            && (self.everything
                || (self.planned && field == Field::NextSteps)
                || (compare && self.turns.iter().any(|turn| covers(turn, open))))
    }
}

/// Whether a report covers planned work: it contains two thirds of its words.
pub(super) fn covers(done: &HashSet<String>, planned: &HashSet<String>) -> bool {
    let shared = planned.iter().filter(|word| done.contains(*word)).count();
    shared * 3 >= planned.len() * 2 && (shared > 1 || (planned.len() == 1 && shared == 1))
}

/// Returns the subject of a turn: the words of its request, its changed files and its commits.
fn taken_up(job: &ExtractInput<'_>, turn: &Turn) -> HashSet<String> {
    let mut about: String = turn.ask.chars().take(LONGEST).collect();
    for said in job.messages.get(turn.range.clone()).unwrap_or_default() {
        for block in &said.message.blocks {
            let Block::ToolCall(call) = block else { continue };
            for path in modified_files(call) {
                let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
                about.push(' ');
                about.extend(name.chars().take(LONGEST));
            }
            if let Some(line) = command::command_line(call)
                && command::purpose(&line, &command::essence(&line)) == Purpose::Effect
            {
                about.push(' ');
                about.extend(line.chars().take(LONGEST));
            }
        }
    }
    words(&about)
}

/// Whether a message of the agent says that nothing is left to do.
fn says_all(text: &str) -> bool {
    static ALL: WordList = WordList::new("ended.all");
    text.lines().flat_map(sentences).any(|sentence| {
        let lower: String = sentence.chars().take(LONGEST).collect::<String>().to_lowercase();
        let all = ALL.iter().find_map(|words| lower.find(words));
        // A commit after which all checks pass ends the work.
        let ends = lower.contains("committed")
            && ["all green", "all tests pass", "all checks pass"].iter().any(|w| lower.contains(w));
        let end = all.or(ends.then_some(lower.len()));
        end.and_then(|end| lower.get(..end)).is_some_and(|before| !is_conditional(before))
            && Signal::of(sentence).is_report()
    })
}

/// Whether the text after these words has not happened yet.
fn is_conditional(before: &str) -> bool {
    static WORDS: WordList = WordList::new("ended.conditions");
    static ANYWHERE: WordList = WordList::new("ended.conditions_anywhere");
    before.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|word| WORDS.contains(&word))
        || ANYWHERE.iter().any(|word| before.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_report_says_that_all_is_done() {
        for text in [
            "Both gaps filled, all green, committed as 9c41e07. Not pushed.",
            "Everything is done.",
            "Nothing is left.",
            "三个任务全部完成。",
        ] {
            assert!(says_all(text), "{text}");
        }
        for text in [
            "Once everything is done, I'll push.",
            "Is everything done?",
            "Is nothing left to do?",
            "Not all committed yet.",
            "All done.",
            "Committed.",
            "all green",
            "如果全部完成就推送。",
        ] {
            assert!(!says_all(text), "{text}");
        }
    }
}
