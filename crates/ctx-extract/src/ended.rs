//! Finds open lines of the previous summary that have been completed or replaced.

use ctx_core::{Block, Role};
use ctx_text::{Gist, Signal, WordList, gist, sentences};

use super::ExtractInput;
use super::note::Note;
use super::turns::Turn;
use crate::Field;
use ctx_facts::command::{self, Purpose};
use ctx_facts::modified_files;

/// The number of newest turns examined, and the maximum length examined in each.
const TURNS: usize = 300;
const LONGEST: usize = 600;

/// What ended since the previous summary.
pub(super) struct Ended {
    /// The words of each completed turn: the request, the files changed, the commits.
    turns: Vec<Gist>,
    /// Whether it was reported since that everything is done.
    everything: bool,
    /// Whether there is a newer plan.
    planned: bool,
}

/// Words that report the end of all work.
static ALL: WordList = WordList::new("ended.all");

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
            // One announced step is only the next one.
            planned: steps.take(2).count() == 2,
        }
    }

    /// Whether an open line can be dropped. With `compare`, its words are compared with those of
    /// each turn.
    pub(super) fn holds(&self, field: Field, open: &Gist, compare: bool) -> bool {
        // Work that waits for someone else is not done when everything else is.
        field != Field::Blocked
            && (self.everything
                || (self.planned && field == Field::NextSteps)
                || (compare && self.turns.iter().any(|turn| covers(turn, open))))
    }
}

/// Whether a report covers planned work: it contains three fifths of its words.
pub(super) fn covers(done: &Gist, planned: &Gist) -> bool {
    let (shared, count) = (planned.shared(done), planned.words.len());
    shared * 5 >= count * 3 && (shared > 1 || count == 1 && shared == 1)
}

/// Returns the subject of a turn: the words of its request, its changed files and its commits.
fn taken_up(job: &ExtractInput<'_>, turn: &Turn) -> Gist {
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
    gist(&about)
}

fn says_all(text: &str) -> bool {
    text.lines().flat_map(sentences).any(|sentence| {
        let lower = sentence.to_lowercase();
        ALL.is_in(&lower) && Signal::of(sentence).done
    })
}
