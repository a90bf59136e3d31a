//! A short session in the form in which Claude Code keeps its own: one message over several lines,
//! a boundary where it made room, a side chain, lines that are no messages.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::clock::Clock;
use super::output;
use super::random::Random;
use super::script::{Instruction, Script};
use super::workspace::Workspace;

const MODEL: &str = "claude-sonnet-4-5-20250929";

const FOLDER: &str = "/home/mira/src/tidemark";

/// 12 March 2026, 09:30 in Vienna.
const STARTED: i64 = 1_773_304_200_000;

/// The session's file.
pub(super) fn session() -> Result<String> {
    let mut random = Random::new(0xc1a0_dec0_de00);
    let session = random.uuid();
    let mut log = Log {
        lines: Vec::new(),
        parent: None,
        side: None,
        clock: Clock(STARTED),
        random,
        session,
        prompt: 15_800,
        ws: Workspace::new(),
    };
    let mut script = Script::new(include_str!("../../assets/claude-code.script"));
    let mut main = (None, 0);
    while let Some(Instruction { verb, body, .. }) = script.next() {
        match verb {
            "bare" => log.bare(&serde_json::from_str(body)?),
            "line" => log.line(serde_json::from_str(body)?),
            "snapshot" => log.snapshot(),
            "user" => log.user(body),
            "queued" => log.bare(&json!({
                "type": "queue-operation", "operation": "enqueue", "timestamp": log.clock.iso(),
                "sessionId": log.session, "content": body,
            })),
            "step" => log.step(&mut script)?,
            "synthetic" => log.synthetic(body),
            "boundary" => log.boundary(body),
            // The lines of an agent that was sent to look stand in the same file, and not on the
            // main line.
            "side-chain" => {
                main = (log.parent.take(), log.prompt);
                log.side = Some(log.random.letters(7).to_lowercase());
                log.prompt = 3_100;
            }
            "main-chain" => {
                log.side = None;
                (log.parent, log.prompt) = std::mem::take(&mut main);
            }
            _ => bail!("unknown instruction '{verb}'"),
        }
    }
    Ok(log.lines.join("\n") + "\n")
}

/// The file as it grows.
struct Log {
    lines: Vec<String>,
    parent: Option<String>,
    /// The agent whose side chain is being written.
    side: Option<String>,
    clock: Clock,
    random: Random,
    session: String,
    prompt: u64,
    ws: Workspace,
}

impl Log {
    /// A line that is no part of the tree.
    fn bare(&mut self, value: &Value) {
        self.lines.push(value.to_string());
    }

    fn line(&mut self, fields: Value) {
        let uuid = self.random.uuid();
        let mut line = json!({
            "parentUuid": self.parent, "isSidechain": self.side.is_some(), "userType": "external",
            "cwd": FOLDER, "sessionId": self.session, "version": "2.1.12",
            "gitBranch": "fix/redelivery",
        });
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(
                self.side.iter().map(|agent| ("agentId".to_owned(), Value::from(agent.as_str()))),
            );
            line.extend(fields);
            line.insert("uuid".to_owned(), uuid.as_str().into());
            line.insert("timestamp".to_owned(), self.clock.iso().into());
        }
        self.bare(&line);
        self.parent = Some(uuid);
    }

    fn snapshot(&mut self) {
        let id = self.random.uuid();
        let snapshot =
            json!({ "messageId": id, "trackedFileBackups": {}, "timestamp": self.clock.iso() });
        self.bare(&json!({
            "type": "file-history-snapshot", "messageId": id, "snapshot": snapshot,
            "isSnapshotUpdate": false,
        }));
    }

    fn user(&mut self, text: &str) {
        self.clock.pass(21_000);
        self.prompt += text.len() as u64 / 3;
        self.line(json!({ "type": "user", "message": { "role": "user", "content": text } }));
    }

    /// What the program itself says in the model's place: no request was answered.
    fn synthetic(&mut self, text: &str) {
        let id = self.random.uuid();
        self.line(json!({
            "type": "assistant",
            "message": {
                "id": id, "model": "<synthetic>", "role": "assistant", "type": "message", "stop_reason": "stop_sequence", "stop_sequence": "",
                "usage": { "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 },
                "content": [{ "type": "text", "text": text }],
            },
            "isApiErrorMessage": true,
        }));
    }

    /// Claude Code makes room: the summary stands for what was before it.
    fn boundary(&mut self, summary: &str) {
        self.clock.pass(47_000);
        let logical = self.parent.take();
        self.line(json!({
            "logicalParentUuid": logical, "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
            "isMeta": false, "level": "info", "compactMetadata": { "trigger": "auto", "preTokens": self.prompt },
        }));
        self.prompt = 16_900;
        self.line(json!({
            "type": "user", "message": { "role": "user", "content": summary },
            "isVisibleInTranscriptOnly": true, "isCompactSummary": true,
        }));
    }

    /// One answer, a line for each part, all with one id; results follow their calls.
    fn step(&mut self, script: &mut Script<'_>) -> Result<()> {
        self.clock.pass(4_200);
        let id = format!("msg_01{}", self.random.letters(22));
        let request = format!("req_011C{}", self.random.letters(20));
        let read = self.prompt;
        let mut grown = 0;
        while let Some(part) = script.next_of(&["think", "say", "read", "edit", "call"]) {
            let mut call = None;
            let block = match part.verb {
                "think" => {
                    let signature = format!("Eu8CCkYICxgCKkB{}==", self.random.letters(88));
                    json!({ "type": "thinking", "thinking": part.body, "signature": signature })
                }
                "say" => json!({ "type": "text", "text": part.body }),
                _ => {
                    let (name, input, result) = self.call(part, script)?;
                    let id = format!("toolu_01{}", self.random.letters(22));
                    let block =
                        json!({ "type": "tool_use", "id": id, "name": name, "input": input });
                    call = Some((id, result));
                    block
                }
            };
            let written = block.to_string().len() as u64 / 4;
            self.clock.pass(900);
            self.line(json!({
                "type": "assistant",
                "message": {
                    "model": MODEL, "id": id, "type": "message", "role": "assistant", "content": [block], "stop_reason": null, "stop_sequence": null,
                    "usage": { "input_tokens": 5, "cache_creation_input_tokens": 380, "cache_read_input_tokens": read, "output_tokens": written, "service_tier": "standard" },
                },
                "requestId": request,
            }));
            grown += written;
            if let Some((call, text)) = call {
                grown += text.len() as u64 / 4;
                self.clock.pass(350);
                self.line(json!({ "type": "user", "message": { "role": "user", "content": [{ "tool_use_id": call, "type": "tool_result", "content": text }] } }));
            }
        }
        self.prompt += grown;
        Ok(())
    }

    /// The tool that a part calls, with what, and what comes back.
    fn call<'a>(
        &mut self,
        part: Instruction<'a>,
        script: &mut Script<'a>,
    ) -> Result<(&'a str, Value, String)> {
        let (first, others) = part.split();
        let path = format!("{FOLDER}/{first}");
        Ok(match part.verb {
            "read" => {
                let lines = self.ws.text(first).lines().enumerate();
                let numbered: Vec<_> =
                    lines.map(|(at, line)| format!("{:>6}→{line}", at + 1)).collect();
                ("Read", json!({ "file_path": path }), numbered.join("\n"))
            }
            "edit" => {
                let new = script.with();
                let input =
                    json!({ "file_path": path, "old_string": part.body, "new_string": new });
                let result = match self.ws.edit(first, part.body, new) {
                    Ok(()) => format!("The file {path} has been updated."),
                    Err(error) => error,
                };
                ("Edit", input, result)
            }
            _ => {
                let shell = output::read(script, &self.ws, &mut Random::new(5))?;
                (first, serde_json::from_str(others)?, shell.text)
            }
        })
    }
}
