//! `ctx chat`: long conversations with a fake provider, by script and at a terminal.

mod long;
mod pi;
mod script;
#[cfg(unix)]
mod stopped;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod told;
#[cfg(unix)]
mod typed;

use std::path::PathBuf;
use std::process::Command;

use ctx_testkit::provider::{FailureKind, FakeProvider, Reply, Request, Step};
use serde_json::{Value, json};

use crate::support::{Ran, Room};

/// A room for a conversation: a working folder, a folder for notes, and a provider.
struct Talk {
    room: Room,
    provider: FakeProvider,
}

impl Talk {
    fn new() -> Self {
        let provider = FakeProvider::builder().respond(model).start().expect("it starts");
        let room = Room::new();
        let workspace = room.path("workspace");
        std::fs::create_dir(&workspace).expect("a folder");
        room.write(
            "ctx.json5",
            json!({"agents": {"defaults": {"workspace": workspace}}}).to_string(),
        );
        let notes: String =
            (1..=600).map(|n| format!("note {n}: what was found at step {n}\n")).collect();
        room.write("work/notes.txt", notes);
        Self { room, provider }
    }

    /// Returns `ctx chat` with these arguments, in the working folder.
    fn command(&self, args: &[&str]) -> Command {
        let args = [&["chat", "--window", "16000"], args].concat();
        let mut command = self.room.command(&args);
        command.current_dir(self.room.path("work")).env("OPENAI_BASE_URL", self.provider.v1());
        for other in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] {
            command.env_remove(other);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Returns the transcript of the only session.
    fn transcript(&self) -> PathBuf {
        let folder = self.room.path("agents/main/sessions");
        let files =
            std::fs::read_dir(folder).expect("sessions").map(|file| file.expect("one").path());
        let files: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|e| e == "jsonl")).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    /// Returns the lines of the transcript.
    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.transcript()).expect("a transcript");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Returns the texts of one role, oldest first.
    fn said(&self, role: &str) -> Vec<String> {
        let is_said = |line: &Value| line["message"]["role"] == role;
        let lines = self.lines().into_iter().filter(is_said);
        let text = |line: Value| match &line["message"]["content"] {
            Value::String(text) => text.clone(),
            content => {
                let parts = content.as_array().into_iter().flatten();
                parts.filter_map(|part| part["text"].as_str()).collect()
            }
        };
        lines.map(text).filter(|text| !text.is_empty()).collect()
    }

    fn notes(&self) -> String {
        let Ok(files) = std::fs::read_dir(self.room.path("workspace/memory")) else {
            return String::new();
        };
        files
            .map(|file| std::fs::read_to_string(file.expect("one").path()).expect("text"))
            .collect()
    }

    /// Checks a conversation of `turns` turns: each message and each answer is stored once and in
    /// order, every call has its result, every request fits.
    fn check(&self, turns: usize) {
        let asked: Vec<_> =
            self.said("user").into_iter().filter(|text| text.starts_with("turn ")).collect();
        let wanted: Vec<_> = (1..=turns).map(|n| format!("turn {n}: go on")).collect();
        assert_eq!(asked, wanted);
        let answers = self.said("assistant");
        let answers = answers.iter().filter_map(|text| text.split(':').next());
        let answers: Vec<_> = answers.filter(|text| text.starts_with("answer ")).collect();
        let wanted: Vec<_> = (1..=turns).map(|n| format!("answer {n}")).collect();
        assert_eq!(answers, wanted);
        let lines = self.lines();
        let mut calls: Vec<&str> = Vec::new();
        for line in &lines {
            for part in line["message"]["content"].as_array().into_iter().flatten() {
                calls.extend((part["type"] == "toolCall").then(|| part["id"].as_str()).flatten());
            }
        }
        let results: Vec<_> =
            lines.iter().filter_map(|line| line["message"]["toolCallId"].as_str()).collect();
        assert!(calls.len() > turns / 2, "{} calls", calls.len());
        assert_eq!(calls, results);
        for request in self.provider.requests() {
            assert!(request.prompt.tokens() <= 16_000, "{}", request.prompt.tokens());
        }
    }

    fn compactions(&self) -> usize {
        self.lines().iter().filter(|line| line["type"] == "compaction").count()
    }
}

/// Returns the number of the turn of a text.
fn number(text: &str) -> usize {
    let rest = text.strip_prefix("turn ").unwrap_or_default();
    rest.split(':').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Returns the provider's answer: tool calls in most turns, long texts in others.
fn model(request: &Request) -> Step {
    if request.model() == "broken" {
        return Step::error(FailureKind::NoSuchModel);
    }
    let is_after_tool = request.prompt.said.last().is_some_and(|(role, _)| role == "tool");
    match request.prompt.tools.as_slice() {
        [tool] if tool == "append_memory" => {
            return match is_after_tool {
                true => Step::text("NO_REPLY"),
                false => Step::call("append_memory", json!({"text": "the user wants to go on"})),
            };
        }
        [] => return Step::new(Reply::Summary),
        _ => {}
    }
    let n = number(request.prompt.last_user());
    let filler = format!("what was found in step {n} stands in notes.txt, line {n}. ").repeat(20);
    match (n % 3, is_after_tool) {
        (1, false) => Step::call("read", json!({"path": "notes.txt", "offset": n, "limit": 60})),
        (2, false) => Step::call("bash", json!({"command": format!("seq {n} {}", n + 300)})),
        _ => Step::text(format!("answer {n}: {filler}")),
    }
}
