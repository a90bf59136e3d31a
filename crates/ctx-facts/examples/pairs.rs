//! Prints how pairs of statements compare, one pair per line of JSONL: `{"old", "new", "replaces"}`.
//!
//! ```sh
//! cargo run -p ctx-facts --example pairs -- crates/ctx-facts/tests/data/pairs.jsonl
//! ```

#![expect(clippy::print_stdout, reason = "the output of the example")]

use std::io::{Error, Result};

use ctx_facts::{Comparison, FEATURE_NAMES, Statement};

fn main() -> Result<()> {
    let file = std::env::args().nth(1).ok_or_else(|| Error::other("which file?"))?;
    println!("replaces\tdecided\t{}", FEATURE_NAMES.join("\t"));
    for line in std::fs::read_to_string(file)?.lines() {
        let pair: serde_json::Value = serde_json::from_str(line)?;
        let text = |name: &str| Statement::of(pair[name].as_str().unwrap_or_default());
        let compared = Comparison::of(&text("new"), &text("old"));
        let features: Vec<String> =
            compared.features().iter().map(|is| format!("{is:.3}")).collect();
        println!("{}\t{}\t{}", pair["replaces"], compared.replaces(), features.join("\t"));
    }
    Ok(())
}
