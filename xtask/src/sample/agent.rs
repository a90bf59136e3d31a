//! The agent of the story: it thinks, speaks, and calls tools that work on the invented project.

use serde_json::{Value, json};

use super::output::Shell;
use super::pictures;
use super::random::Random;
use super::recorder::Recorder;
use super::workspace::Workspace;

/// pi's `read` shows this many lines at once.
const READ_LINES: usize = 2_000;

/// The agent, its files and its session.
pub(crate) struct Agent {
    pub(crate) ws: Workspace,
    pub(crate) rec: Recorder,
    pub(crate) random: Random,
}

impl Agent {
    /// The person says something.
    pub(crate) fn user(&mut self, text: &str) -> String {
        self.user_with(text, &[])
    }

    /// The person says something and shows pictures.
    pub(crate) fn user_with(&mut self, text: &str, pictures: &[&str]) -> String {
        let wait = 4_000 + text.chars().count() as u64 * 90 + self.random.range(0, 9_000);
        self.rec.clock.pass(wait);
        let mut content = vec![json!({ "type": "text", "text": text })];
        content.extend(pictures.iter().map(|data| picture(data)));
        self.rec.message(json!({ "role": "user", "content": content }), text.len())
    }

    /// The person is away.
    pub(crate) fn pause(&mut self, minutes: u64) {
        self.rec.clock.pass(minutes * 60_000);
    }

    /// One answer of the model.
    pub(crate) fn step(&mut self) -> Step<'_> {
        Step { agent: self, content: Vec::new(), chars: 0, calls: Vec::new() }
    }

    /// The model's last word of a turn.
    pub(crate) fn answer(&mut self, text: &str) -> String {
        self.step().say(text).run("stop")
    }

    /// The person runs a command beside the model.
    pub(crate) fn bash(&mut self, command: &str, output: &str, excluded: bool) {
        self.rec.clock.pass(9_000);
        let chars = if excluded { 0 } else { command.len() + output.len() };
        let mut message = json!({
            "role": "bashExecution", "command": command, "output": output, "exitCode": 0,
            "cancelled": false, "truncated": false,
        });
        if excluded {
            message["excludeFromContext"] = true.into();
        }
        self.rec.message(message, chars);
    }

    fn perform(&mut self, call: &Call) -> (Vec<Value>, Value, bool) {
        let text = |text: String| vec![json!({ "type": "text", "text": text })];
        match call {
            Call::Read { path, offset, limit } => {
                let whole = self.ws.text(path);
                if whole.is_empty() {
                    return (
                        text(format!("ENOENT: no such file or directory, open '{path}'")),
                        Value::Null,
                        true,
                    );
                }
                let total = whole.lines().count();
                let first = offset.unwrap_or(1);
                let lines = limit.unwrap_or(READ_LINES);
                let mut shown: Vec<_> = whole.lines().skip(first - 1).take(lines).collect();
                let last = first - 1 + shown.len();
                let more = format!(
                    "\n[{} more lines in file. Use offset={} to continue.]",
                    total - last,
                    last + 1
                );
                if last < total {
                    shown.push(&more);
                }
                (text(shown.join("\n")), Value::Null, false)
            }
            Call::Picture { data, .. } => (
                vec![
                    json!({ "type": "text", "text": "Read image file [image/png]" }),
                    picture(data),
                ],
                Value::Null,
                false,
            ),
            Call::Edit { path, old, new } => match self.ws.edit(path, old, new) {
                Ok(()) => {
                    let (line, _) = self.ws.line(path, new.lines().next().unwrap_or(""));
                    (
                        text(format!("Successfully replaced 1 block(s) in {path}.")),
                        json!({ "diff": edit_diff(line, old, new), "firstChangedLine": line }),
                        false,
                    )
                }
                Err(error) => (text(error), Value::Null, true),
            },
            Call::Write { path, content } => {
                self.ws.write(path, content.clone());
                (
                    text(format!("Successfully wrote {} bytes to {path}", content.len())),
                    Value::Null,
                    false,
                )
            }
            Call::Grep { pattern, path } => (text(self.ws.grep(pattern, path)), Value::Null, false),
            Call::Shell { shell, .. } | Call::Other { shell, .. } => {
                let mut out = shell.text.clone();
                if out.is_empty() {
                    out.push_str("(no output)");
                }
                if shell.code != 0 {
                    out.push_str(&format!("\n\nCommand exited with code {}", shell.code));
                }
                (text(out), Value::Null, shell.code != 0)
            }
        }
    }
}

/// A call of a tool, and for those that leave the files alone what comes back.
enum Call {
    Read { path: String, offset: Option<usize>, limit: Option<usize> },
    Picture { path: String, data: &'static str },
    Edit { path: String, old: String, new: String },
    Write { path: String, content: String },
    Grep { pattern: String, path: String },
    Shell { command: String, shell: Shell },
    Other { name: &'static str, arguments: Value, shell: Shell },
}

impl Call {
    fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Picture { .. } => "read",
            Self::Edit { .. } => "edit",
            Self::Write { .. } => "write",
            Self::Grep { .. } => "grep",
            Self::Shell { .. } => "bash",
            Self::Other { name, .. } => name,
        }
    }

    fn arguments(&self) -> Value {
        match self {
            Self::Read { path, offset, limit } => {
                let mut arguments = json!({ "path": path });
                if let (Some(offset), Some(limit)) = (offset, limit) {
                    arguments["offset"] = (*offset).into();
                    arguments["limit"] = (*limit).into();
                }
                arguments
            }
            Self::Picture { path, .. } => json!({ "path": path }),
            Self::Edit { path, old, new } => {
                json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] })
            }
            Self::Write { path, content } => json!({ "path": path, "content": content }),
            Self::Grep { pattern, path } => {
                json!({ "pattern": pattern, "path": path, "literal": true })
            }
            Self::Shell { command, .. } => json!({ "command": command }),
            Self::Other { arguments, .. } => arguments.clone(),
        }
    }
}

/// One answer of the model, being put together.
pub(crate) struct Step<'a> {
    agent: &'a mut Agent,
    content: Vec<Value>,
    chars: usize,
    calls: Vec<(String, Call)>,
}

impl Step<'_> {
    pub(crate) fn think(mut self, thinking: &str) -> Self {
        let signature = self.agent.rec.signature();
        self.chars += thinking.len();
        self.content.push(
            json!({ "type": "thinking", "thinking": thinking, "thinkingSignature": signature }),
        );
        self
    }

    pub(crate) fn say(mut self, text: &str) -> Self {
        self.chars += text.len();
        self.content.push(json!({ "type": "text", "text": text }));
        self
    }

    pub(crate) fn read(self, path: &str) -> Self {
        self.call(Call::Read { path: path.to_owned(), offset: None, limit: None })
    }

    pub(crate) fn read_part(self, path: &str, offset: usize, limit: usize) -> Self {
        self.call(Call::Read { path: path.to_owned(), offset: Some(offset), limit: Some(limit) })
    }

    pub(crate) fn look(self, path: &str, data: &'static str) -> Self {
        self.call(Call::Picture { path: path.to_owned(), data })
    }

    pub(crate) fn edit(self, path: &str, old: &str, new: &str) -> Self {
        self.call(Call::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned() })
    }

    pub(crate) fn write(self, path: &str, content: &str) -> Self {
        self.call(Call::Write { path: path.to_owned(), content: content.to_owned() })
    }

    pub(crate) fn grep(self, pattern: &str, path: &str) -> Self {
        self.call(Call::Grep { pattern: pattern.to_owned(), path: path.to_owned() })
    }

    pub(crate) fn bash(self, command: &str, shell: Shell) -> Self {
        self.call(Call::Shell { command: command.to_owned(), shell })
    }

    /// A tool that the person's extensions bring.
    pub(crate) fn tool(self, name: &'static str, arguments: Value, text: String) -> Self {
        self.call(Call::Other { name, arguments, shell: Shell::ok(text) })
    }

    fn call(mut self, call: Call) -> Self {
        let id = self.agent.rec.call_id();
        let arguments = call.arguments();
        self.chars += call.name().len() + arguments.to_string().len();
        self.content.push(
            json!({ "type": "toolCall", "id": id, "name": call.name(), "arguments": arguments }),
        );
        self.calls.push((id, call));
        self
    }

    /// The model has spoken: its tools run, one after the other. Gives the answer's entry id.
    pub(crate) fn go(self) -> String {
        self.run("toolUse")
    }

    fn run(self, stop: &str) -> String {
        let Self { agent, content, chars, calls } = self;
        agent.rec.clock.pass(1_800 + chars as u64 * 6 + agent.random.range(0, 2_500));
        let id = agent.rec.assistant(&Value::Array(content), chars, stop);
        for (call_id, call) in calls {
            let (content, details, is_error) = agent.perform(&call);
            let slow = matches!(&call, Call::Shell { command, .. } if command.starts_with("cargo") || command.starts_with("for"));
            agent.rec.clock.pass(if slow {
                agent.random.range(4_000, 26_000)
            } else {
                agent.random.range(8, 240)
            });
            let chars =
                content.iter().filter_map(|block| block["text"].as_str()).map(str::len).sum();
            let mut message = json!({
                "role": "toolResult", "toolCallId": call_id, "toolName": call.name(), "content": content,
            });
            if !details.is_null() {
                message["details"] = details;
            }
            message["isError"] = is_error.into();
            agent.rec.message(message, chars);
        }
        id
    }
}

fn picture(data: &str) -> Value {
    json!({ "type": "image", "data": data, "mimeType": pictures::MIME })
}

/// The few lines that pi shows of an edit.
fn edit_diff(line: usize, old: &str, new: &str) -> String {
    let mut out = String::new();
    for (sign, text) in [('-', old), ('+', new)] {
        for (at, content) in text.lines().enumerate() {
            out.push_str(&format!("{sign}{:>3} {content}\n", line + at));
        }
    }
    out.truncate(out.trim_end().len());
    out
}
