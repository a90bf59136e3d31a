//! Lists the facts that rules find in messages, one per line.
//!
//! ```text
//! cargo run -p ctx-memory --example list_facts < messages.jsonl
//! ```
//!
//! A line of the input is `{"session": "s", "role": "user", "text": "..."}`.

use std::error::Error;
use std::io::{BufRead, Write};

use ctx_core::{Role, Timestamp};
use ctx_memory::facts::{SourceMessage, find_facts};
use serde::Deserialize;

#[derive(Deserialize)]
struct Said {
    session: String,
    role: Role,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let said: Said = serde_json::from_str(&line?)?;
        let message = SourceMessage {
            entry: "e".into(),
            session: &said.session,
            role: &said.role,
            timestamp: Timestamp(0),
            text: &said.text,
        };
        for fact in find_facts(&[message]) {
            let (kind, who) = (fact.kind.name(), &said.session);
            writeln!(out, "{who}\t{}\t{kind}\t{}", said.role, fact.content)?;
        }
    }
    Ok(())
}
