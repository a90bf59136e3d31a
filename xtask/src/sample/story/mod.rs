//! The long session: a flaky test is found out, fixed at its root, and what the fix touches is put
//! in order. Seven acts, told in the order in which they happened.

mod colleague;
mod commands;
mod cure;
mod detour;
mod docs;
mod hunt;
mod soak;

use serde_json::json;

use super::agent::Agent;
use super::random::Random;
use super::recorder::Recorder;
use super::workspace::Workspace;

/// 11 March 2026, 19:04 in Vienna.
const STARTED: i64 = 1_773_252_240_000;

/// The session's file.
pub(crate) fn session() -> String {
    let mut agent = Agent {
        ws: Workspace::new(),
        rec: Recorder::new(STARTED, "/home/mira/src/tidemark"),
        random: Random::new(0x71de_3a4b),
    };
    agent
        .rec
        .entry("model_change", json!({ "provider": "anthropic", "modelId": "claude-sonnet-4-5" }));
    agent.rec.entry("thinking_level_change", json!({ "thinkingLevel": "medium" }));
    hunt::play(&mut agent);
    detour::play(&mut agent);
    cure::play(&mut agent);
    commands::play(&mut agent);
    colleague::play(&mut agent);
    docs::play(&mut agent);
    soak::play(&mut agent);
    agent.rec.text()
}
