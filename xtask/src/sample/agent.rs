//! The long session: a flaky test is found out, fixed at its root, and what the fix touches is put
//! in order. Its script is played: the agent thinks, speaks, and calls tools that work on the
//! invented project.

use std::collections::HashMap;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::output::{self, Shell};
use super::random::Random;
use super::recorder::Recorder;
use super::script::{Instruction, Script};
use super::workspace::Workspace;

/// pi's `read` shows this many lines at once.
const READ_LINES: usize = 2_000;

/// 11 March 2026, 19:04 in Vienna.
const STARTED: i64 = 1_773_252_240_000;

/// The session's file.
pub(super) fn session() -> Result<String> {
    let mut agent = Agent {
        ws: Workspace::new(),
        rec: Recorder::new(STARTED, "/home/mira/src/tidemark"),
        random: Random::new(0x71de_3a4b),
        given: HashMap::new(),
        mark: String::new(),
    };
    let mut script = Script::new(include_str!("../../assets/fix-flaky-test.script"));
    while let Some(instruction) = script.next() {
        agent.play(instruction, &mut script)?;
    }
    Ok(agent.rec.text())
}

/// The agent, its files and its session.
struct Agent<'a> {
    ws: Workspace,
    rec: Recorder,
    random: Random,
    /// Outputs that were made before the step that shows them, by name.
    given: HashMap<&'a str, Shell>,
    /// Where a detour began.
    mark: String,
}

impl<'a> Agent<'a> {
    fn play(&mut self, instruction: Instruction<'a>, script: &mut Script<'a>) -> Result<()> {
        let Instruction { verb, arguments, body } = instruction;
        match verb {
            "user" => {
                let wait = 4_000 + body.chars().count() as u64 * 90 + self.random.range(0, 9_000);
                self.rec.clock.pass(wait);
                let mut content = vec![json!({ "type": "text", "text": body })];
                content.extend((!arguments.is_empty()).then(|| picture(arguments)));
                self.rec.message(json!({ "role": "user", "content": content }), body.len());
            }
            "user-bash" => {
                let output = output::read(script, &self.ws, &mut self.random)?.text;
                self.bash(body, &output, arguments == "excluded");
            }
            "pause" => self.rec.clock.pass(arguments.parse::<u64>()? * 60_000),
            "step" => self.step(script)?,
            "answer" => {
                let content = json!([{ "type": "text", "text": body }]);
                self.say(&content, body.len(), "stop");
            }
            "given" => {
                let (name, call) = instruction.split();
                self.given.insert(name, output::make(call, body, &self.ws, &mut self.random)?);
            }
            "entry" => self.rec.entry(arguments, serde_json::from_str(body)?),
            "label" => {
                let labelled = self.rec.leaf();
                self.rec.entry("label", json!({ "targetId": labelled, "label": arguments }));
            }
            "replace" => {
                let new = script.with();
                arguments.split(' ').for_each(|path| self.ws.replace_all(path, body, new));
            }
            "commit" => self.ws.commit(),
            "mark" => self.mark = self.rec.leaf(),
            "back" => {
                self.ws.restore();
                self.rec.branch(&self.mark);
                self.rec.clock.pass(70_000);
                let details: Value = serde_json::from_str(arguments)?;
                let from = json!({
                    "fromId": self.mark, "summary": body, "details": details, "fromHook": false,
                });
                self.rec.entry("branch_summary", from);
            }
            "compaction" => {
                let kept = self.rec.leaf();
                self.rec.clock.pass(31_000);
                let (read, modified) = (listed(body, "read"), listed(body, "modified"));
                let details = json!({ "readFiles": read, "modifiedFiles": modified });
                self.rec.compaction(&kept, body, &details);
            }
            _ => bail!("unknown instruction '{verb}'"),
        }
        Ok(())
    }

    /// The person runs a command beside the model.
    fn bash(&mut self, command: &str, output: &str, excluded: bool) {
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

    /// One answer of the model; then its tools run, one after the other.
    fn step(&mut self, script: &mut Script<'a>) -> Result<()> {
        const PARTS: [&str; 9] =
            ["think", "say", "read", "look", "edit", "write", "grep", "bash", "tool"];
        let (mut content, mut chars, mut calls) = (Vec::new(), 0, Vec::new());
        while let Some(part) = script.next_of(&PARTS) {
            content.push(match part.verb {
                "think" => {
                    chars += part.body.len();
                    let signature = self.rec.signature();
                    json!({ "type": "thinking", "thinking": part.body, "thinkingSignature": signature })
                }
                "say" => {
                    chars += part.body.len();
                    json!({ "type": "text", "text": part.body })
                }
                _ => {
                    let call = self.call(part, script)?;
                    chars += call.name.len() + call.arguments.to_string().len();
                    let block = json!({
                        "type": "toolCall", "id": call.id, "name": call.name,
                        "arguments": call.arguments,
                    });
                    calls.push(call);
                    block
                }
            });
        }
        self.say(&Value::Array(content), chars, "toolUse");
        for call in &calls {
            self.run(call);
        }
        Ok(())
    }

    /// The model has spoken.
    fn say(&mut self, content: &Value, chars: usize, stop: &str) {
        self.rec.clock.pass(1_800 + chars as u64 * 6 + self.random.range(0, 2_500));
        self.rec.assistant(content, chars, stop);
    }

    fn call(&mut self, part: Instruction<'a>, script: &mut Script<'a>) -> Result<Call<'a>> {
        let (first, others) = part.split();
        let (mut name, mut new, mut shell) = (part.verb, "", Shell::default());
        let arguments = match part.verb {
            "read" => match others.split_once(' ') {
                Some((offset, limit)) => {
                    let (offset, limit): (usize, usize) = (offset.parse()?, limit.parse()?);
                    json!({ "path": first, "offset": offset, "limit": limit })
                }
                None => json!({ "path": first }),
            },
            "look" => {
                name = "read";
                json!({ "path": first })
            }
            "edit" => {
                new = script.with();
                let edit = json!({ "oldText": part.body, "newText": new });
                json!({ "path": first, "edits": [edit] })
            }
            "write" => json!({ "path": first, "content": part.body }),
            "grep" => json!({ "pattern": others, "path": first, "literal": true }),
            _ => {
                let given =
                    script.next_of(&["shown"]).and_then(|it| self.given.remove(it.arguments));
                shell = match given {
                    Some(given) => given,
                    None => output::read(script, &self.ws, &mut self.random)?,
                };
                if part.verb == "bash" {
                    json!({ "command": part.body })
                } else {
                    name = first;
                    serde_json::from_str(others)?
                }
            }
        };
        Ok(Call { id: self.rec.call_id(), name, arguments, part, new, shell })
    }

    fn run(&mut self, call: &Call<'_>) {
        let (content, details, is_error) = self.perform(call);
        let command = call.arguments["command"].as_str().unwrap_or("");
        let is_slow = command.starts_with("cargo") || command.starts_with("for");
        let (least, most) = if is_slow { (4_000, 26_000) } else { (8, 240) };
        self.rec.clock.pass(self.random.range(least, most));
        let chars = content.iter().filter_map(|block| block["text"].as_str()).map(str::len).sum();
        let mut message = json!({
            "role": "toolResult", "toolCallId": call.id, "toolName": call.name, "content": content,
        });
        if !details.is_null() {
            message["details"] = details;
        }
        message["isError"] = is_error.into();
        self.rec.message(message, chars);
    }

    fn perform(&mut self, call: &Call<'_>) -> (Vec<Value>, Value, bool) {
        let Call { part, new, shell, .. } = call;
        let (path, others) = part.split();
        let mut details = Value::Null;
        let done = match part.verb {
            "read" => self.read(path, others),
            "look" => Ok("Read image file [image/png]".to_owned()),
            "edit" => self.ws.edit(path, part.body, new).map(|()| {
                let (line, _) = self.ws.line(path, new.lines().next().unwrap_or(""));
                let diff = edit_diff(line, part.body, new);
                details = json!({ "diff": diff, "firstChangedLine": line });
                format!("Successfully replaced 1 block(s) in {path}.")
            }),
            "write" => {
                self.ws.write(path, part.body.to_owned());
                Ok(format!("Successfully wrote {} bytes to {path}", part.body.len()))
            }
            "grep" => Ok(self.ws.grep(others, path)),
            _ => {
                let text = if shell.text.is_empty() { "(no output)" } else { &shell.text };
                match shell.code {
                    0 => Ok(text.to_owned()),
                    code => Err(format!("{text}\n\nCommand exited with code {code}")),
                }
            }
        };
        let is_error = done.is_err();
        let mut content = vec![json!({ "type": "text", "text": done.unwrap_or_else(|e| e) })];
        content.extend((part.verb == "look").then(|| picture(others)));
        (content, details, is_error)
    }

    /// A file, or `LINES` of it from `FIRST`.
    fn read(&self, path: &str, part: &str) -> Result<String, String> {
        let whole = self.ws.text(path);
        if whole.is_empty() {
            return Err(format!("ENOENT: no such file or directory, open '{path}'"));
        }
        let mut numbers = part.split(' ').filter_map(|number| number.parse::<usize>().ok());
        let first = numbers.next().unwrap_or(1);
        let total = whole.lines().count();
        let mut shown: Vec<_> =
            whole.lines().skip(first - 1).take(numbers.next().unwrap_or(READ_LINES)).collect();
        let last = first - 1 + shown.len();
        let more = format!(
            "\n[{} more lines in file. Use offset={} to continue.]",
            total - last,
            last + 1
        );
        if last < total {
            shown.push(&more);
        }
        Ok(shown.join("\n"))
    }
}

/// A call of a tool, and for those that leave the files alone what comes back.
struct Call<'a> {
    id: String,
    name: &'a str,
    arguments: Value,
    part: Instruction<'a>,
    /// What an edit writes.
    new: &'a str,
    shell: Shell,
}

fn picture(data: &str) -> Value {
    json!({ "type": "image", "data": data, "mimeType": "image/png" })
}

/// The files that a summary lists as read or modified.
fn listed<'a>(summary: &'a str, how: &str) -> Vec<&'a str> {
    let lines = summary.lines().skip_while(|line| *line != format!("<{how}-files>")).skip(1);
    lines.take_while(|line| !line.starts_with("</")).collect()
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
