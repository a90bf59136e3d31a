//! `ctx mcp`.

mod clients;
mod http;
mod lines;
mod others;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Room, text};

const KEY: &str = "agent:main:main";
const OTHER: &str = "agent:main:explicit:other";

/// Creates a home with two archived sessions of the agent `main`; the first one has a compaction,
/// and mentions a parrot in its fifth message.
fn home() -> Room {
    let room = Room::new();
    let config = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
    room.write("ctx.json5", config.to_string());
    let first = room.write("agents/main/sessions/s1.jsonl", transcript("s1", 120, true));
    let other = room.write("agents/main/sessions/s2.jsonl", transcript("s2", 3, false));
    let entry = |id: &str, at: u64| json!({ "sessionId": id, "updatedAt": at });
    let sessions =
        json!({ (OTHER): entry("s2", 1_790_000_000_000), (KEY): entry("s1", 1_790_000_100_000) });
    room.write("agents/main/sessions/sessions.json", sessions.to_string());
    for path in [&first, &other] {
        room.json(&["memory", "ingest", text(path)]);
    }
    let done = room.json(&["compact", text(&first), "--window", "16000"]);
    assert_eq!(done["compacted"], true, "{done}");
    room
}

fn transcript(id: &str, modules: usize, has_parrot: bool) -> String {
    let at = "2026-09-21T12:00:00.000Z";
    let header = json!({ "type": "session", "version": 3, "id": id, "timestamp": at, "cwd": "/" });
    let mut lines = vec![header.to_string()];
    let mut parent = Value::Null;
    for n in 0..modules * 2 {
        let entry = format!("{:08x}", n + 1);
        let said = match n {
            4 if has_parrot => {
                "by the way: the parrot of the lighthouse keeper is called Quillon".to_owned()
            }
            _ if n % 2 == 0 => format!("please look at module {} and tell what it does", n / 2),
            _ => format!("module {} reads its input, checks it and writes it. ", n / 2).repeat(12),
        };
        let content = json!([{ "type": "text", "text": said }]);
        let message = match n % 2 {
            0 => {
                json!({ "role": "user", "content": content, "timestamp": 1_790_000_000_000u64 + n as u64 })
            }
            _ => json!({
                "role": "assistant", "content": content, "api": "openai-completions", "provider": "fake",
                "model": "fake", "stopReason": "stop", "timestamp": 1_790_000_000_000u64 + n as u64,
                "usage": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
                    "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 } },
            }),
        };
        lines.push(
            json!({ "type": "message", "id": entry, "parentId": parent, "timestamp": at,
                "message": message })
            .to_string(),
        );
        parent = Value::from(entry);
    }
    lines.join("\n") + "\n"
}

/// A server over HTTP, which ends with the test.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(room: &Room) -> Self {
        Self::of(&mut room.command(&["mcp", "--http", "127.0.0.1:0", "--session", KEY]))
    }

    /// Starts a server that prints its address in the first line.
    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let mut url = String::new();
        BufReader::new(stdout).read_line(&mut url).expect("it prints its address");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
