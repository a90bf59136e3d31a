//! Prints the facts of a conversation: one message per line of the input, `U:` by the user, `A:` by the
//! assistant.
//!
//! ```sh
//! printf 'U: the port is 8080\nA: ok\nU: the port is now 9090\n' | cargo run -p ctx-facts --example facts
//! ```

#![expect(clippy::print_stdout, reason = "the output of the example")]

use std::io::BufRead;

use ctx_core::{Message, Role};
use ctx_facts::{CitedMessage, FactLedger};

fn main() -> std::io::Result<()> {
    let mut ledger = FactLedger::default();
    for (n, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        let (role, text) = match line.split_at_checked(2) {
            Some(("A:", text)) => (Role::Assistant, text),
            Some(("U:", text)) => (Role::User, text),
            _ => continue,
        };
        let message = Message::text(role, text.trim().replace("\\n", "\n")).into();
        ledger.read(&CitedMessage { id: (n + 1).to_string().into(), message, pinned: false });
    }
    let facts = ledger.facts();
    for fact in facts.required {
        println!("{:?} [e:{}] {}", fact.kind, fact.entry, fact.text);
    }
    for old in facts.superseded {
        println!("superseded [e:{}] {} -> {}", old.fact.entry, old.fact.text, old.by);
    }
    Ok(())
}
