//! Tests of the server: with rmcp's client, with lines of input, and with cancelled calls.

mod cancelled;
mod clients;
mod lines;

use std::path::Path;

use ctx_config::Config;
use ctx_server::Host;
use ctx_session::Home;
use ctx_session::key::FileId;
use serde_json::json;
use tempfile::TempDir;

use super::{Server, Setup, Writes};

const KEY: &str = "agent:main:main";

/// Creates a home with one session that is not archived.
fn home() -> TempDir {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("agents/main/sessions");
    std::fs::create_dir_all(&folder).unwrap();
    let stored = json!({ (KEY): { "sessionId": "s", "updatedAt": 1_790_000_000_000u64 } });
    std::fs::write(folder.join("sessions.json"), stored.to_string()).unwrap();
    let mut lines = vec![json!({ "type": "session", "version": 3, "id": "s",
        "timestamp": "2026-09-21T12:00:00.000Z", "cwd": "/" })];
    let mut parent = None;
    for n in 1..=120 {
        let entry = format!("{n:08x}");
        let text = format!("module {n} reads its input and writes it. ").repeat(20);
        lines.push(json!({ "type": "message", "id": entry, "parentId": parent,
            "timestamp": "2026-09-21T12:00:00.000Z",
            "message": { "role": "user", "content": text } }));
        parent = Some(entry);
    }
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("s.jsonl"), lines.join("\n") + "\n").unwrap();
    home
}

fn server(home: &Path) -> Server {
    let host = Host { config: Config::default(), home: Home::at(home) };
    Server::new(Setup {
        host,
        agent: FileId::main(),
        session: None,
        writes: Writes::All,
        others: None,
    })
}
