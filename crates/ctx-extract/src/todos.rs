//! Task lists that agents keep with tools: Claude Code's `TodoWrite`, `TaskCreate` and
//! `TaskUpdate`, Codex's `update_plan`, OpenCode's `todowrite`, Gemini's `write_todos`, and similar
//! ones.

use std::collections::HashMap;

use ctx_core::{EntryId, ToolCall};
use ctx_text::{WordList, collapsed};
use serde_json::Value;

/// Names of the field of a listed task that holds its text, best first.
static TEXTS: WordList = WordList::new("arguments.task_texts");

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Doing,
    Done,
    /// Given up.
    Dropped,
}

/// A task and where it was last mentioned.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) text: String,
    pub(super) state: State,
    pub(super) entry: EntryId,
    /// The position of that entry in the history.
    pub(super) at: usize,
}

/// All tasks of a session so far, in order of first mention.
#[derive(Clone, Debug, Default)]
pub(super) struct Todos {
    tasks: Vec<Task>,
    by_text: HashMap<String, usize>,
    /// Tasks by the id their tool assigned.
    by_id: HashMap<String, usize>,
    created: usize,
    /// The tasks of the newest list.
    listed: Vec<usize>,
    /// The position of that list in the history.
    listed_at: usize,
}

impl Todos {
    /// Records a call, if it is a task tool's.
    pub(super) fn call(&mut self, call: &ToolCall, entry: &EntryId, at: usize) {
        let name: String = call.name.chars().take(64).filter(|c| c.is_alphanumeric()).collect();
        let name = name.to_lowercase();
        let keeps = name.contains("todo") || name.contains("plan") || name.starts_with("task");
        // `Task` alone starts a subagent.
        if !keeps || name == "task" {
            return;
        }
        let Ok(Value::Object(arguments)) = serde_json::from_str(call.arguments.as_str()) else {
            return;
        };
        let lists = ["todos", "plan", "tasks", "items", "steps"];
        if let Some(items) = lists.iter().find_map(|key| arguments.get(*key)?.as_array()) {
            self.list(items, entry, at);
            return;
        }
        let get = |keys: &[&str]| keys.iter().find_map(|key| text_of(arguments.get(*key)?));
        let id = get(&["taskId", "task_id", "id"]);
        let state = arguments.get("status").and_then(Value::as_str).map(state);
        if let Some(subject) = get(&["subject"]) {
            let task = self.see(&subject, state.unwrap_or(State::Pending), entry, at);
            // Results say `Task #1 created`: ids count from 1.
            self.created += 1;
            self.by_id.insert(self.created.to_string(), task);
        } else if let (Some(id), Some(state)) = (&id, state)
            && let Some(task) = self.by_id.get(id).and_then(|&at| self.tasks.get_mut(at))
        {
            task.state = state;
            (task.entry, task.at) = (entry.clone(), at);
        }
    }

    /// Applies a list, which contains all open tasks: an unfinished task that is missing on it
    /// was dropped.
    fn list(&mut self, items: &[Value], entry: &EntryId, at: usize) {
        self.listed_at = at;
        for n in std::mem::take(&mut self.listed) {
            if let Some(task) = self.tasks.get_mut(n).filter(|task| task.state != State::Done) {
                task.state = State::Dropped;
            }
        }
        for item in items {
            let text = match item {
                Value::String(text) => Some(text.clone()),
                item => TEXTS.iter().find_map(|key| item.get(key)?.as_str().map(str::to_owned)),
            };
            let Some(text) = text else { continue };
            let word = ["status", "state"].iter().find_map(|key| item.get(key)?.as_str());
            let checked = ["done", "completed"].iter().find_map(|key| item.get(key)?.as_bool());
            let state = match (word, checked) {
                (Some(word), _) => state(word),
                (None, Some(true)) => State::Done,
                (None, _) => State::Pending,
            };
            let task = self.see(&text, state, entry, at);
            self.listed.push(task);
        }
    }

    fn see(&mut self, text: &str, state: State, entry: &EntryId, at: usize) -> usize {
        let text = collapsed(text);
        let found = *self.by_text.entry(text.clone()).or_insert(self.tasks.len());
        match self.tasks.get_mut(found) {
            Some(task) => {
                if task.state != state {
                    (task.entry, task.at) = (entry.clone(), at);
                }
                task.state = state;
            }
            None => self.tasks.push(Task { text, state, entry: entry.clone(), at }),
        }
        found
    }

    pub(super) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    pub(super) fn tasks_mut(&mut self) -> &mut [Task] {
        &mut self.tasks
    }

    /// Removes the tasks that calls from this position on show.
    pub(super) fn drop_shown_since(&mut self, at: usize) {
        let has_list = self.listed_at >= at;
        self.tasks.retain(|task| !has_list && task.at < at);
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn state(word: &str) -> State {
    match word {
        "completed" | "complete" | "done" | "finished" | "closed" => State::Done,
        "in_progress" | "in-progress" | "inProgress" | "active" | "doing" => State::Doing,
        "cancelled" | "canceled" | "deleted" | "skipped" => State::Dropped,
        _ => State::Pending,
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::RawJson;

    use super::*;

    #[test]
    fn the_newest_list_counts_and_what_was_done_stays_done() {
        let call =
            |name: &str, arguments: &str| ToolCall::new("c", name, RawJson::from_text(arguments));
        let mut todos = Todos::default();
        let calls = [
            (
                "TodoWrite",
                r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}]}"#,
            ),
            (
                "update_plan",
                r#"{"plan":[{"step":"c","status":"in_progress"},{"step":"d","status":"pending"}]}"#,
            ),
            ("TaskCreate", r#"{"subject":"e","description":"x"}"#),
            ("TaskUpdate", r#"{"taskId":"1","status":"completed"}"#),
            ("read", r#"{"path":"todo.md"}"#),
            ("Task", r#"{"prompt":"x"}"#),
            ("todowrite", "{broken"),
        ];
        for (name, arguments) in calls {
            todos.call(&call(name, arguments), &"1".into(), 0);
        }
        let seen: Vec<_> = todos.tasks().iter().map(|t| (t.text.as_str(), t.state)).collect();
        assert_eq!(
            seen,
            [
                ("a", State::Done),
                ("b", State::Dropped),
                ("c", State::Doing),
                ("d", State::Pending),
                ("e", State::Done)
            ]
        );
    }
}
