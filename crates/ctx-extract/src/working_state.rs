//! What an agent has at hand and a summary would only paraphrase: the rules files that it has read,
//! and its open tasks.

use std::collections::HashMap;

use ctx_core::{Block, Counter, EntryId, Tokens, ToolCall};
use ctx_facts::{CitedMessage, FileLists, modified_files};
use ctx_text::{WordList, without_injected};

use crate::note::normal;
use crate::todos::{State, Task, Todos};

/// Names of files with instructions for agents.
static RULES_FILES: WordList = WordList::new("files.rules");

/// A rules file is not cut to fewer tokens than these.
const LEAST: Tokens = Tokens(100);

/// The tags around rules files and open tasks. Only ctx writes them into a summary.
pub const WORKING_STATE_TAGS: [&str; 2] = ["rules-file", "open-tasks"];

/// The end of a rules file.
const RULES_END: &str = "</rules-file>";

/// A rules file as the agent read it.
#[derive(Clone, Debug)]
struct RulesFile {
    path: String,
    text: String,
    /// The position of the message with the text.
    at: usize,
    /// Whether the agent changed the file afterwards.
    changed: bool,
}

/// The rules files that the agent has read, and its task list.
#[derive(Clone, Debug, Default)]
pub struct WorkingState {
    /// The newest text of each file, newest last.
    rules: Vec<RulesFile>,
    todos: Todos,
    /// The paths of rules files by the call that reads them.
    calls: HashMap<String, String>,
    /// The number of messages read.
    messages: usize,
}

impl WorkingState {
    /// Reads all messages of a session.
    #[must_use]
    pub(crate) fn of(messages: &[CitedMessage]) -> Self {
        let mut state = Self::default();
        messages.iter().for_each(|said| state.read(said));
        state
    }

    /// Changes the ids of the entries that changed tasks.
    pub fn map_ids(&mut self, map: impl Fn(&EntryId) -> EntryId) {
        self.todos.tasks_mut().iter_mut().for_each(|task| task.entry = map(&task.entry));
    }

    pub(crate) fn tasks(&self) -> &[Task] {
        self.todos.tasks()
    }

    /// Reads the next message of the session.
    pub fn read(&mut self, said: &CitedMessage) {
        for block in &said.message.blocks {
            match block {
                Block::ToolCall(call) => {
                    self.todos.call(call, &said.id, self.messages);
                    self.file_call(call, said);
                }
                Block::ToolResult(result) if !result.is_error => {
                    if let Some(path) = self.calls.remove(&*result.call_id) {
                        self.file(path, &result.plain_text());
                    }
                }
                _ => {}
            }
        }
        self.messages += 1;
    }

    fn file_call(&mut self, call: &ToolCall, said: &CitedMessage) {
        let arguments = call.arguments.as_str();
        if !RULES_FILES.is_in(arguments) {
            return;
        }
        for path in modified_files(call) {
            self.rules.iter_mut().filter(|file| file.path == path).for_each(|f| f.changed = true);
        }
        let files = FileLists::of(std::slice::from_ref(said)).read_files.into_iter();
        // With an offset, only a part of the file is read.
        let path =
            files.filter(|path| is_rules_file(path)).find(|path| arguments.contains(&**path));
        if let Some(path) = path.filter(|_| !arguments.contains("\"offset\"")) {
            self.calls.insert(call.id.to_string(), path);
        }
    }

    fn file(&mut self, path: String, result: &str) {
        self.rules.retain(|file| file.path != path);
        let text = without_line_numbers(&without_injected(result));
        self.rules.push(RulesFile { path, text, at: self.messages, changed: false });
    }

    /// Returns the state after the kept messages, without what they show themselves.
    #[must_use]
    pub fn beside(&self, kept: impl Iterator<Item = CitedMessage>) -> Self {
        let mut now = self.clone();
        kept.for_each(|said| now.read(&said));
        now.rules.retain(|file| file.at < self.messages);
        now.todos.drop_shown_since(self.messages);
        now
    }

    /// Quotes the rules files within `room` tokens, the one read last first. A text that is too long
    /// is cut at a line.
    pub fn rules(&self, room: Tokens, counter: &Counter) -> String {
        let (mut out, mut left) = (String::new(), room);
        for file in self.rules.iter().rev() {
            let block = file.quoted(left, counter);
            left -= counter.text(&block);
            out.push_str(&block);
        }
        out
    }

    /// Lists the open tasks that `summary` does not name, within `room` tokens.
    pub fn missing_tasks(&self, summary: &str, room: Tokens, counter: &Counter) -> String {
        let summary = normal(summary);
        let block = |tasks: &str| format!("\n\n<open-tasks>\n{tasks}</open-tasks>");
        let mut out = String::new();
        for task in self.todos.tasks() {
            let state = match task.state {
                State::Doing => " (in progress)",
                State::Pending => "",
                State::Done | State::Dropped => continue,
            };
            let line = format!("- [ ] {}{state}\n", task.text);
            let fits = counter.text(&block(&format!("{out}{line}"))) <= room;
            if fits && !summary.contains(&normal(&task.text)) {
                out.push_str(&line);
            }
        }
        if out.is_empty() { out } else { block(&out) }
    }
}

impl RulesFile {
    fn quoted(&self, room: Tokens, counter: &Counter) -> String {
        let path: String = self.path.chars().filter(|c| *c != '"' && !c.is_control()).collect();
        let note = if self.changed { "[changed since: read the file again]\n" } else { "" };
        let framed = |text| format!("\n\n<rules-file path=\"{path}\">\n{text}{note}{RULES_END}");
        let rest = |lines: usize| format!("[{lines} more lines: read the file]\n");
        let lines: Vec<&str> = self.text.lines().filter(|line| !line.contains(RULES_END)).collect();
        let mut left = room - counter.text(&framed("")) - counter.text(&rest(lines.len()));
        if left < LEAST && counter.text(&self.text) > left {
            return String::new();
        }
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            let line = format!("{line}\n");
            let size = counter.text(&line);
            if size > left {
                text.push_str(&rest(lines.len() - at));
                break;
            }
            left -= size;
            text.push_str(&line);
        }
        framed(&text)
    }
}

fn is_rules_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    RULES_FILES.contains(name)
}

/// Removes the line numbers that tools put before each line: `    12→text`.
fn without_line_numbers(text: &str) -> String {
    let bare = |line: &str| -> Option<String> {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        rest.strip_prefix(['→', '\t']).filter(|rest| rest.len() < line.len()).map(str::to_owned)
    };
    let lines: Option<Vec<String>> = text.trim_end().lines().map(bare).collect();
    lines.map_or_else(|| text.trim_end().to_owned(), |lines| lines.join("\n"))
}
