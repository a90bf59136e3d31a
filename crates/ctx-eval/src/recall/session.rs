//! Recorded sessions of agents: what was read, run or asked for again is a question about what had
//! left the window.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{Block, CallId, Entry, EntryId, Message, Result, Role, Timestamp, ToolCall};
use ctx_facts::command::command_line;
use ctx_facts::{CitedMessage, FileLists};
use ctx_memory::archive::SegmentMaker;
use ctx_search::SegmentId;
use ctx_search::question::{is_query, query_text};
use ctx_session::Transcript;

use super::conversation::{Conversation, Question, Recorded};
use crate::eval::bench::holds_word;

/// The newest messages of this many tokens are in the window: the default of
/// `compaction.keepRecentTokens`.
const KEPT: u64 = 20_000;

/// A shorter name of a file may be any word.
const LEAST_NAME: usize = 4;

/// Makes questions from a recorded session. A call that reads a file or runs a command is a
/// *repetition* if a call before the window read the same file or ran the same command, and none in
/// the window did. It asks two questions: by `intention`, the agent's last words before the call
/// (text or thinking, since the user's last message), and by `user`, the user's last message. A
/// message of the user that contains the name of such a file, or such a command, asks by `user` as
/// well. The earlier calls and their results are the evidence. The same words ask for the same file
/// or command once.
///
/// # Errors
///
/// If a message cannot be read.
pub fn session(name: &str, transcript: &Transcript, maker: &SegmentMaker) -> Result<Conversation> {
    let mut reader = Reader::default();
    reader.made.name = name.to_owned();
    for item in transcript.main_line()? {
        reader.read(&item.entry, maker)?;
    }
    Ok(reader.made)
}

#[derive(Default)]
struct Reader {
    made: Conversation,
    places: HashMap<SegmentId, usize>,
    /// By message: the number of turns before it, and its tokens.
    messages: Vec<(usize, u64)>,
    /// The calls that read a file or ran a command, by path or command line.
    runs: BTreeMap<String, Vec<Run>>,
    calls: HashMap<CallId, Vec<String>>,
    /// The agent's last words, and the user's last message.
    words: String,
    user: (String, Option<usize>),
    /// Questions by the repetition that asks them.
    asked: HashMap<(CallId, String), Vec<usize>>,
    known: HashSet<(String, String)>,
}

struct Run {
    id: CallId,
    message: usize,
    /// The turns of the call and of its result.
    turns: Vec<usize>,
    result: Option<(String, usize)>,
}

impl Reader {
    fn read(&mut self, entry: &Entry, maker: &SegmentMaker) -> Result<()> {
        let message = entry.message()?;
        let before = self.made.turns.len();
        let segment = maker.of_entry(entry, Timestamp(0))?;
        let tokens = segment.as_ref().map_or(0, |segment| segment.tokens.into());
        let turn = segment.map(|segment| {
            let next = self.made.turns.len();
            let place = *self.places.entry(segment.id).or_insert(next);
            if place == next {
                self.made.turns.push(segment);
            }
            place
        });
        for result in message.tool_results() {
            self.result(&result.call_id, turn, &result.plain_text());
        }
        if message.role == Role::User && message.tool_results().next().is_none() {
            self.user = (query_text(&message.plain_text()).to_owned(), turn);
            self.words.clear();
            self.mentioned();
        }
        for block in &message.blocks {
            match block {
                Block::Text { text } | Block::Thinking { thinking: text, .. }
                    if message.role == Role::Assistant && !text.trim().is_empty() =>
                {
                    query_text(text).clone_into(&mut self.words);
                }
                Block::ToolCall(call) => self.call(call, turn),
                _ => {}
            }
        }
        self.messages.push((before, tokens));
        Ok(())
    }

    fn call(&mut self, call: &ToolCall, turn: Option<usize>) {
        for subject in subjects(call) {
            let mut asked = self.ask("intention", &self.words.clone(), &subject, true);
            asked.extend(self.ask("user", &self.user.0.clone(), &subject, true));
            self.asked.insert((call.id.clone(), subject.clone()), asked);
            let turns = turn.into_iter().collect();
            let (id, message) = (call.id.clone(), self.messages.len());
            self.calls.entry(id.clone()).or_default().push(subject.clone());
            self.runs.entry(subject).or_default().push(Run { id, message, turns, result: None });
        }
    }

    /// Records the result of a call, and which earlier results of the same are equal.
    fn result(&mut self, id: &CallId, turn: Option<usize>, text: &str) {
        for subject in self.calls.remove(id).unwrap_or_default() {
            let runs = self.runs.entry(subject.clone()).or_default();
            let same = |run: &Run| run.result.as_ref().filter(|(was, _)| was == text).map(|r| r.1);
            let unchanged: Vec<usize> = runs.iter().filter_map(same).collect();
            if let Some(run) = runs.iter_mut().rfind(|run| run.id == *id) {
                run.turns.extend(turn);
                run.result = turn.map(|turn| (text.to_owned(), turn));
            }
            for at in self.asked.remove(&(id.clone(), subject)).unwrap_or_default() {
                if let Some(recorded) = &mut self.made.questions[at].recorded {
                    let is_archived = |turn: &&usize| **turn < recorded.archived;
                    recorded.unchanged = unchanged.iter().filter(is_archived).copied().collect();
                }
            }
        }
    }

    /// Asks about what the user's message names.
    fn mentioned(&mut self) {
        let said = self.user.0.clone();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let subjects: Vec<String> = self.runs.keys().cloned().collect();
        for subject in subjects {
            let name = subject.rsplit('/').next().unwrap_or_default();
            let is_name = name.len() >= LEAST_NAME && name.contains('.') || name.contains(' ');
            if is_name && holds_word(&said, name, true, is_word) {
                self.ask("user", &said, &subject, false);
            }
        }
    }

    /// Adds a question about a file or a command, if the answer had left the window.
    fn ask(&mut self, kind: &str, words: &str, subject: &str, is_repeated: bool) -> Vec<usize> {
        let Some(runs) = self.runs.get(subject).filter(|_| is_query(words)) else {
            return Vec::new();
        };
        let mut left = KEPT;
        let fits = |(_, tokens): &&(usize, u64)| {
            let fits = *tokens <= left;
            left = left.saturating_sub(*tokens);
            fits
        };
        let kept = self.messages.iter().rev().take_while(fits).count().max(1);
        let first = self.messages.len().saturating_sub(kept);
        let archived = self.messages.get(first).map_or(0, |(before, _)| *before);
        let turns = runs.iter().flat_map(|run| run.turns.iter().copied());
        let mut evidence: Vec<usize> = turns.filter(|turn| *turn < archived).collect();
        evidence.sort_unstable();
        evidence.dedup();
        let in_window = runs.iter().any(|run| run.message >= first);
        let pair = (words.to_owned(), subject.to_owned());
        if in_window || evidence.is_empty() || !self.known.insert(pair) {
            return Vec::new();
        }
        let visible = self.user.1;
        let recorded = Recorded { archived, visible, unchanged: Vec::new(), is_repeated };
        self.made.questions.push(Question {
            text: words.to_owned(),
            category: kind.to_owned(),
            counts: true,
            evidence,
            recorded: Some(recorded),
        });
        vec![self.made.questions.len() - 1]
    }
}

/// Returns the command that a call runs, or the files that it reads.
pub(crate) fn subjects(call: &ToolCall) -> Vec<String> {
    if let Some(command) = command_line(call) {
        return vec![command];
    }
    let message = Message::new(Role::Assistant, vec![Block::ToolCall(call.clone())]);
    let id = EntryId::from("");
    let cited = CitedMessage { id, message: Arc::new(message), pinned: false };
    FileLists::of(&[cited]).read_files.into_iter().collect()
}
