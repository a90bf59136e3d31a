//! The turns of a session, appended one by one.

use ctx_core::{BashRun, Block, Message, RawJson, Role, ToolCall, ToolResult, Usage};

use super::blocks::{bytes_of, image, quoted};
use super::{Habits, words};
use crate::Random;

/// Maximum number of system messages and summaries between the turns.
const MAX_PINS: usize = 3;

/// The transcript being written.
pub(super) struct Draft {
    pub(super) random: Random,
    pub(super) habits: Habits,
    pub(super) messages: Vec<Message>,
    /// Remaining bytes of text.
    pub(super) left: usize,
    /// Bytes used, for usage reports.
    spent: usize,
    calls: usize,
    /// Number of system messages and summaries between the turns.
    pins: usize,
    /// Late results.
    late: Vec<Message>,
}

impl Draft {
    pub(super) fn new(random: Random, habits: Habits, bytes: usize) -> Self {
        let (messages, late) = (Vec::new(), Vec::new());
        Self { random, habits, messages, left: bytes, spent: 0, calls: 0, pins: 0, late }
    }

    /// Appends one turn, or a message between turns.
    pub(super) fn turn(&mut self) {
        match self.random.weighted(&[8, 12, 2, 1, 1, 1, 1, 1, 1, 1]) {
            0 => {
                self.ask();
                self.answer();
            }
            1 => self.agentic(),
            2 => self.monologue(),
            3 => self.bash(),
            4 => self.custom(),
            5 => self.ask(),
            6 => self.image(),
            7 => self.branch(),
            8 => self.odd(),
            // Views pin these: with many of them, nothing else would fit.
            _ if self.pins < MAX_PINS => {
                self.pins += 1;
                if self.random.once_in(2) { self.summary() } else { self.system() }
            }
            _ => self.ask(),
        }
        if !self.late.is_empty() && self.random.once_in(2) {
            let late = std::mem::take(&mut self.late);
            self.messages.extend(late);
        }
    }

    /// Appends the last turn, which may end anywhere: after the question, in the middle of a tool
    /// call.
    pub(super) fn last(&mut self) {
        let late = std::mem::take(&mut self.late);
        self.messages.extend(late);
        match self.random.weighted(&[3, 2, 2, 1]) {
            0 => {
                self.ask();
                self.answer();
            }
            1 => self.ask(),
            2 => {
                self.ask();
                let calls = self.calls();
                let most = calls.len();
                let answered = self.random.within(0..=most);
                self.results(calls.into_iter().take(answered).collect());
            }
            _ => self.agentic(),
        }
    }

    pub(super) fn system(&mut self) {
        let text = "You are a coding agent. Mind the tests.";
        self.push(Message::text(Role::System, text));
    }

    fn ask(&mut self) {
        let mut text = words::ask(&mut self.random);
        if self.random.once_in(12) {
            let bytes = self.size(20_000);
            text = format!("{text}\n```\n{}\n```", words::output(&mut self.random, bytes));
        }
        self.push(Message::text(Role::User, text));
    }

    fn answer(&mut self) {
        let text = words::report(&mut self.random);
        let mut message = self.assistant(vec![Block::text(text)]);
        if self.habits.damaged && self.random.once_in(15) {
            message.blocks.clear();
            message.meta.stop_reason = Some("aborted".to_owned());
        }
        self.push(message);
    }

    /// Rounds of tool calls between a question and its answer.
    fn agentic(&mut self) {
        self.ask();
        for _ in 0..self.random.within(1..=8) {
            if self.left == 0 {
                break;
            }
            let calls = self.calls();
            self.results(calls);
        }
        if !self.random.once_in(6) {
            self.answer();
        }
    }

    /// Answers without a question in between.
    fn monologue(&mut self) {
        for _ in 0..self.random.within(2..=6) {
            let bytes = self.size(8_000);
            let text = words::output(&mut self.random, bytes);
            let message = self.assistant(vec![Block::text(text)]);
            self.push(message);
        }
    }

    /// Appends a message with one or several calls; returns their ids and tools.
    fn calls(&mut self) -> Vec<(String, &'static str)> {
        let parallel = if self.random.once_in(3) { self.random.within(2..=5) } else { 1 };
        let mut blocks = Vec::new();
        if self.random.once_in(3) {
            blocks.push(Block::text(words::report(&mut self.random)));
        }
        let mut made = Vec::new();
        for _ in 0..parallel {
            // Some providers restart the numbering of calls with each answer.
            let number = if self.habits.ids_come_again { made.len() } else { self.calls };
            self.calls += 1;
            let id = format!("call_{number}");
            let (tool, argument) = self.random.pick(words::TOOLS);
            let mut value = words::argument(&mut self.random).to_owned();
            if matches!(tool, "write" | "edit") && self.random.once_in(3) {
                let bytes = self.size(6_000);
                value = words::output(&mut self.random, bytes);
            }
            let arguments = RawJson::from_text(format!("{{\"{argument}\":{}}}", quoted(&value)));
            let spelling = self.habits.spelling;
            let call =
                ToolCall { id: id.as_str().into(), name: tool.to_owned(), arguments, spelling };
            blocks.push(Block::ToolCall(call));
            made.push((id, tool));
        }
        let message = self.assistant(blocks);
        self.push(message);
        made
    }

    /// Appends the results of calls: mostly all of them, mostly in order; in damaged transcripts
    /// some are late, missing or duplicated.
    fn results(&mut self, mut calls: Vec<(String, &'static str)>) {
        if self.random.once_in(4) {
            self.random.shuffle(&mut calls);
        }
        let mut together = Vec::new();
        for (id, tool) in calls {
            let outcome = if self.habits.damaged { self.random.within(0..=39) } else { 39 };
            if outcome == 0 {
                continue;
            }
            let result = self.result(&id, tool);
            let message = |result| Message::new(Role::ToolResult, vec![Block::ToolResult(result)]);
            match outcome {
                1 => self.late.push(message(result)),
                2 => {
                    self.push(message(result.clone()));
                    self.push(message(result));
                }
                _ if self.habits.results_by_user => together.push(Block::ToolResult(result)),
                _ => self.push(message(result)),
            }
        }
        if !together.is_empty() {
            if self.random.once_in(8) {
                together.push(Block::text(words::ask(&mut self.random)));
            }
            self.push(Message::new(Role::User, together));
        }
    }

    fn result(&mut self, id: &str, tool: &str) -> ToolResult {
        let most = match self.random.weighted(&[12, 6, 2]) {
            0 => 800,
            1 => 12_000,
            // A result that is larger than all others.
            _ => self.left / 2,
        };
        let bytes = self.size(most);
        let mut content = vec![Block::text(words::output(&mut self.random, bytes))];
        if self.random.once_in(30) {
            content.push(image());
        }
        if self.random.once_in(60) {
            content.clear();
        }
        ToolResult {
            call_id: id.into(),
            name: self.random.once_in(2).then(|| tool.to_owned()),
            content,
            is_error: self.random.once_in(10),
        }
    }

    fn bash(&mut self) {
        let bytes = self.size(4_000);
        let run = BashRun {
            command: "cargo test --workspace".to_owned(),
            output: words::output(&mut self.random, bytes),
            exit_code: Some(self.random.pick(&[0, 0, 1, 101, 137])),
            cancelled: self.random.once_in(10),
            exclude_from_context: self.random.once_in(4),
            ..BashRun::default()
        };
        self.push(Message::new(Role::BashExecution, vec![Block::Bash(run)]));
    }

    fn custom(&mut self) {
        let mut message = Message::text(Role::Custom, words::report(&mut self.random));
        message.meta.custom_type = Some("reminder".to_owned());
        self.push(message);
    }

    fn image(&mut self) {
        let ask = Block::text(words::ask(&mut self.random));
        self.push(Message::new(Role::User, vec![ask, image()]));
        self.answer();
    }

    fn branch(&mut self) {
        let text = words::summary(&mut self.random);
        self.push(Message::text(Role::BranchSummary, text));
    }

    /// The summary of an earlier compaction.
    pub(super) fn summary(&mut self) {
        let mut message = Message::text(Role::CompactionSummary, words::summary(&mut self.random));
        message.meta.tokens_before = Some(self.random.within(10_000..=200_000) as u64);
        self.push(message);
    }

    /// Appends a message that current agents do not write, but that occurs in files.
    fn odd(&mut self) {
        let text = words::report(&mut self.random);
        let message = match self.random.within(0..=4) {
            0 => Message::new(Role::User, Vec::new()),
            1 => Message::text(Role::Assistant, "\n"),
            2 => {
                let json = RawJson::from_text(format!(
                    "{{\"type\":\"hologram\",\"x\":{}}}",
                    quoted(&text)
                ));
                Message::new(Role::User, vec![Block::text("see"), Block::Opaque { json }])
            }
            3 if self.habits.damaged => Message::tool_result("call_of_nobody", text),
            _ => Message::text(Role::Other("narrator".into()), text),
        };
        self.push(message);
    }

    fn assistant(&mut self, mut blocks: Vec<Block>) -> Message {
        if self.habits.thinks && self.random.once_in(2) {
            let bytes = self.size(3_000);
            let thinking = words::output(&mut self.random, bytes);
            blocks.insert(0, Block::Thinking { thinking, signature: Some("proof".to_owned()) });
        }
        let mut message = Message::new(Role::Assistant, blocks);
        message.meta.provider = Some("anthropic".to_owned());
        message.meta.model = Some("claude-sonnet-4-5".to_owned());
        message.meta.stop_reason = Some("stop".to_owned());
        if self.habits.reports_usage {
            let prompt = (self.spent / 4) as u64;
            let output = 100;
            let usage = Usage { input: prompt, output, ..Usage::default() };
            message.meta.usage = Some(usage);
        }
        message
    }

    /// Returns a size up to `most`, and up to `left`; small ones are more common than large ones.
    fn size(&mut self, most: usize) -> usize {
        let most = most.min(self.left).max(8);
        let upto = self.random.within(8..=most);
        self.random.within(8..=upto)
    }

    fn push(&mut self, message: Message) {
        let bytes = bytes_of(&message);
        self.left = self.left.saturating_sub(bytes);
        self.spent += bytes;
        self.messages.push(message);
    }
}
